// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/recipients/recipients_read.h"

#include <string.h>

#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/base/log.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "common/events/sealed.h"
#include "common/model/channel_address.h"
#include "common/recipients/people_sql.h"
#include "stentor/v1/request.pb-c.h"

// clang-format off
// First the ids, then a look-up by key for each: no plan joins whole tables.
// The last event about anything of the recipient.
#define VERSION \
    "greatest(r.sequence, r.unsubscribed_sequence," \
    " (SELECT max(q.sequence) FROM people.preferences q WHERE q.tenant_id = $1::text AND q.recipient_id = r.recipient_id)," \
    " (SELECT max(q.sequence) FROM people.consents q WHERE q.tenant_id = $1::text AND q.recipient_id = r.recipient_id))"
// One text with a blank between, in their order; null: none.
#define LABELS \
    "(SELECT string_agg(q.label, ' ' ORDER BY q.label) FROM people.labels q" \
    " WHERE q.tenant_id = $1::text AND q.recipient_id = r.recipient_id)"
#define IDS "WITH ids AS MATERIALIZED ("
#define PEOPLE \
    "), chosen AS MATERIALIZED (SELECT DISTINCT recipient_id FROM ids WHERE recipient_id > $2::text ORDER BY 1 LIMIT $3::int4)" \
    " SELECT r.recipient_id, r.identity_type, r.identity_id, r.name, r.locale, r.time_zone, r.quiet_start, r.quiet_end," \
    " r.minor, r.guardian_id, r.guardian_routing, r.unsubscribed_at, r.updated_at," \
    " a.channel, a.address, a.status, a.verified, a.is_primary, a.label, a.address_hash, " LABELS ", " VERSION " FROM chosen s" \
    " CROSS JOIN LATERAL (SELECT * FROM people.recipients q" \
    "  WHERE q.tenant_id = $1::text AND q.recipient_id = s.recipient_id AND q.sequence > 0 OFFSET 0) r" \
    " LEFT JOIN LATERAL (SELECT * FROM people.addresses q" \
    "  WHERE q.tenant_id = $1::text AND q.recipient_id = s.recipient_id OFFSET 0) a ON true" \
    " ORDER BY r.recipient_id, a.position"
enum { ID, IDENTITY_TYPE, IDENTITY_ID, NAME, LOCALE, TIME_ZONE, QUIET_START, QUIET_END, MINOR, GUARDIAN, ROUTING,
       UNSUBSCRIBED_AT, UPDATED_AT, CHANNEL, ADDRESS, STATUS, VERIFIED, PRIMARY, LABEL, HASH, LABEL_LIST, VERSION_AT, COLUMNS };

static const DbStatement BY_ID = {"people_by_id", IDS "SELECT $4::text AS recipient_id" PEOPLE};
static const DbStatement BY_IDENTITY = {"people_by_identity",
    IDS "SELECT recipient_id FROM people.recipients WHERE tenant_id = $1::text AND identity_type = $4::text"
    " AND identity_id = $5::text AND sequence > 0" PEOPLE};
static const DbStatement BY_ADDRESS = {"people_by_address",
    IDS "SELECT recipient_id FROM people.addresses WHERE tenant_id = $1::text AND address_hash = ANY ($4::bytea[])" PEOPLE};
const DbStatement people_known_sql = {"people_known",
    "SELECT r.recipient_id, " VERSION " FROM people.recipients r WHERE r.tenant_id = $1::text AND r.recipient_id = $2::text"
    " AND r.sequence > 0"};
const DbStatement people_preferences_sql = {"people_preferences_of",
    "SELECT category, channel, is_off, frequency, at_minute, on_weekday, updated_at FROM people.preferences"
    " WHERE tenant_id = $1::text AND recipient_id = $2::text AND NOT is_cleared ORDER BY category, channel"};
const DbStatement people_consents_sql = {"people_consents_of",
    "SELECT category, channel, is_granted, source, given_at FROM people.consents"
    " WHERE tenant_id = $1::text AND recipient_id = $2::text ORDER BY category, channel"};
const DbStatement people_identities_sql = {"people_identities",
    "SELECT u.type, u.id, min(r.recipient_id) FROM unnest($2::text[], $3::text[]) AS u (type, id)"
    " CROSS JOIN LATERAL (SELECT q.recipient_id FROM people.recipients q WHERE q.tenant_id = $1::text"
    "  AND q.identity_type = u.type AND q.identity_id = u.id AND q.sequence > 0 OFFSET 0) r GROUP BY 1, 2"};
// clang-format on

typedef struct Line { // a recipient with one of its addresses; a copy of the row
    Str text[COLUMNS];
    bool null[COLUMNS];
    int64_t number[COLUMNS];
    KeyWant *name_key;    // NULL: no name
    KeyWant *address_key; // NULL: no address
    const Stentor__V1__Sealed *name;
    const Stentor__V1__Sealed *address;
} Line;

typedef struct Reading {
    RecipientsRead *read;
    Line *lines;
    size_t count;
    KeyWant *wants;
    size_t want_count;
    Buf out;
} Reading;

// ---- JSON ----

static void field(Buf *out, const char *name)
{
    char last = out->len > 0 ? out->ptr[out->len - 1] : '{';
    buf_printf(out, "%s\"%s\":", last == '{' ? "" : ",", name);
}

static void text_field(const Line *line, int column, const char *name, Buf *out)
{
    if (!line->null[column]) {
        field(out, name);
        buf_json(out, line->text[column]);
    }
}

static void bool_field(const Line *line, int column, const char *name, Buf *out)
{
    field(out, name);
    buf_cstr(out, line->number[column] != 0 ? "true" : "false");
}

static void time_field(const Line *line, int column, const char *name, Buf *out)
{
    if (line->number[column] != 0) {
        char text[CLOCK_RFC3339_SIZE];
        clock_format(line->number[column], text);
        field(out, name);
        buf_json(out, str_from(text));
    }
}

static bool open_sealed(
    const Reading *r, const Line *line, const char *name, const Stentor__V1__Sealed *sealed,
    DataKey *key, Str *ret)
{
    Error err = {0};
    const RecipientsRead *read = r->read;
    if (key == NULL) {
        return false; // destroyed: the recipient is erased
    }
    if (!unseal(key, read->tenant, line->text[ID], name, sealed, read->arena, ret, &err)) {
        LOG(LOG_ERROR, "a sealed field cannot be read",
            log_text("tenant", arena_cstr(read->arena, read->tenant)), log_text("field", name),
            log_error(&err));
        return false;
    }
    return true;
}

static void put_name(const Reading *r, const Line *line, Buf *out)
{
    Str name = STR_EMPTY;
    if (line->name == NULL) {
        return;
    }
    field(out, "name");
    if (!open_sealed(r, line, "name", line->name, line->name_key->key, &name)) {
        buf_cstr(out, "null");
    } else if (r->read->reveal) {
        buf_json(out, name);
    } else {
        Buf masked;
        buf_init(&masked, 64);
        people_name_mask(name, &masked);
        buf_json(out, buf_view(&masked));
        buf_done(&masked);
    }
}

// What suppressions name an address by; of an erased one nothing names it.
static void put_hash(const Line *line, Buf *out)
{
    char hex[2 * ADDRESS_HASH_LEN + 1];
    if (line->text[HASH].len == ADDRESS_HASH_LEN) {
        hex_encode(line->text[HASH].ptr, ADDRESS_HASH_LEN, hex);
        field(out, "address_hash");
        buf_json(out, str_from(hex));
    }
}

static void put_address_text(const Reading *r, const Line *line, Buf *out)
{
    Str packed = STR_EMPTY;
    Channel channel = CHANNEL_NONE;
    const Stentor__V1__Address *plain = NULL;
    (void)channel_from_name(line->text[CHANNEL], &channel);
    if (open_sealed(r, line, "address", line->address, line->address_key->key, &packed)) {
        plain = (const Stentor__V1__Address *)event_unpack(
            &stentor__v1__address__descriptor, packed, r->read->arena, NULL);
    }
    field(out, "address");
    if (plain == NULL) {
        buf_cstr(out, "null");
        return;
    }
    if (r->read->reveal) {
        buf_json(out, str_from(plain->address));
    } else {
        Buf masked;
        buf_init(&masked, 2 * PEOPLE_ADDRESS_MAX);
        people_address_mask(channel, str_from(plain->address), &masked);
        buf_json(out, buf_view(&masked));
        buf_done(&masked);
    }
    put_hash(line, out);
}

static void put_address(const Reading *r, const Line *line, Buf *out)
{
    buf_char(out, '{');
    text_field(line, CHANNEL, "channel", out);
    put_address_text(r, line, out);
    text_field(line, STATUS, "status", out);
    bool_field(line, VERIFIED, "verified", out);
    bool_field(line, PRIMARY, "primary", out);
    text_field(line, LABEL, "label", out);
    buf_char(out, '}');
}

static void put_quiet(const Line *line, Buf *out)
{
    if (!line->null[QUIET_START]) {
        int start = (int)line->number[QUIET_START];
        int end = (int)line->number[QUIET_END];
        field(out, "quiet_hours");
        buf_printf(
            out, "{\"start\":\"%02d:%02d\",\"end\":\"%02d:%02d\"}", start / 60, start % 60,
            end / 60, end % 60);
    }
}

static void put_labels(const Line *line, Buf *out)
{
    Str rest = line->null[LABEL_LIST] ? STR_EMPTY : line->text[LABEL_LIST];
    Str label = STR_EMPTY;
    field(out, "labels");
    buf_char(out, '[');
    for (const char *comma = ""; str_split(&rest, ' ', &label); comma = ",") {
        if (label.len > 0) {
            buf_cstr(out, comma);
            buf_json(out, label);
        }
    }
    buf_char(out, ']');
}

static void put_head(const Reading *r, const Line *line, Buf *out)
{
    buf_char(out, '{');
    text_field(line, ID, "id", out);
    text_field(line, IDENTITY_TYPE, "identity_type", out);
    text_field(line, IDENTITY_ID, "identity_id", out);
    put_name(r, line, out);
    text_field(line, LOCALE, "locale", out);
    text_field(line, TIME_ZONE, "time_zone", out);
    put_quiet(line, out);
    bool_field(line, MINOR, "minor", out);
    text_field(line, GUARDIAN, "guardian_id", out);
    text_field(line, ROUTING, "guardian_routing", out);
    put_labels(line, out);
    time_field(line, UNSUBSCRIBED_AT, "unsubscribed_at", out);
    time_field(line, UPDATED_AT, "updated_at", out);
    field(out, "addresses");
    buf_char(out, '[');
}

static size_t limit_of(const RecipientsRead *read)
{
    return read->limit == 0 ? 1 : read->limit;
}

static size_t put_people(Reading *r)
{
    size_t people = 0;
    size_t limit = limit_of(r->read);
    bool first_address = true;
    for (size_t i = 0; i < r->count; i++) {
        const Line *line = &r->lines[i];
        if (i == 0 || !str_eq(line->text[ID], r->lines[i - 1].text[ID])) {
            if (people == limit) {
                r->read->more = true; // one more than was to be shown was read
                break;
            }
            buf_cstr(&r->out, people > 0 ? "]}," : "");
            put_head(r, line, &r->out);
            r->read->last = line->text[ID];
            r->read->version = (uint64_t)line->number[VERSION_AT];
            people++;
            first_address = true;
        }
        if (line->address != NULL) {
            buf_cstr(&r->out, first_address ? "" : ",");
            put_address(r, line, &r->out);
            first_address = false;
        }
    }
    buf_cstr(&r->out, people > 0 ? "]}" : "");
    return people;
}

// ---- rows ----

static void finish(Reading *r, const Error *err)
{
    Error full = {0};
    size_t people = err == NULL ? put_people(r) : 0;
    if (err == NULL && r->out.full) {
        (void)error_set(&full, ERROR_PERMANENT, "the answer is longer than 8 MiB");
        err = &full;
    }
    Buf out = r->out; // the answer ends the request, and with it the arena that this lies in
    r->read->done(r->read->ctx, people, err == NULL ? buf_view(&out) : STR_EMPTY, err);
    buf_done(&out);
}

static void on_keys_found(void *ctx, const Error *err)
{
    finish(ctx, err);
}

static const Stentor__V1__Sealed *want_sealed(
    Reading *r, const Line *line, int column, KeyWant **ret_want)
{
    if (line->null[column]) {
        return NULL;
    }
    const Stentor__V1__Sealed *sealed = (const Stentor__V1__Sealed *)event_unpack(
        &stentor__v1__sealed__descriptor, line->text[column], r->read->arena, NULL);
    if (!sealed_names_key(sealed)) {
        return NULL;
    }
    *ret_want = &r->wants[r->want_count++];
    **ret_want = key_want_of(r->read->tenant, sealed);
    return sealed;
}

static void copy_row(const PGresult *rows, int at, Line *line, Arena *arena)
{
    for (int column = 0; column < COLUMNS; column++) {
        line->null[column] = db_is_null(rows, at, column);
        if (line->null[column]) {
            continue;
        }
        if (column == QUIET_START || column == QUIET_END || column == MINOR || column == VERIFIED ||
            column == PRIMARY || column == VERSION_AT) {
            line->number[column] = db_get_int(rows, at, column);
        } else if (column == UNSUBSCRIBED_AT || column == UPDATED_AT) {
            line->number[column] = db_get_time(rows, at, column);
        } else {
            line->text[column] = arena_str(arena, db_get_text(rows, at, column));
        }
    }
}

static void on_rows(void *ctx, DbTxn *txn, const Error *err)
{
    Reading *r = ctx;
    if (err != NULL) {
        finish(r, err);
        return;
    }
    const PGresult *rows = db_txn_result(txn, 1);
    r->count = (size_t)db_rows(rows);
    r->lines = arena_array(r->read->arena, r->count + 1, sizeof *r->lines);
    r->wants = arena_array(r->read->arena, 2 * r->count + 1, sizeof *r->wants);
    for (size_t i = 0; i < r->count; i++) {
        Line *line = &r->lines[i];
        copy_row(rows, (int)i, line, r->read->arena);
        if (i == 0 || !str_eq(line->text[ID], r->lines[i - 1].text[ID])) {
            line->name = want_sealed(r, line, NAME, &line->name_key);
        }
        line->address = want_sealed(r, line, ADDRESS, &line->address_key);
    }
    if (r->want_count == 0) {
        finish(r, NULL);
    } else {
        keyring_resolve(r->read->keyring, r->wants, r->want_count, on_keys_found, r);
    }
}

static void add_query(const RecipientsRead *read, DbTxn *txn)
{
    const DbStatement *statement = read->id.len > 0            ? &BY_ID
                                   : read->identity_id.len > 0 ? &BY_IDENTITY
                                                               : &BY_ADDRESS;
    DbParams *p = db_txn_add(txn, statement, NULL);
    db_text(p, read->tenant);
    db_text(p, read->after);
    db_i32(p, (int32_t)limit_of(read) + 1);
    if (statement == &BY_ID) {
        db_text(p, read->id);
    } else if (statement == &BY_IDENTITY) {
        db_text(p, str_from(identity_name(read->identity)));
        db_text(p, read->identity_id);
    } else {
        DbArray *hashes = db_array(p, DB_BYTES);
        for (size_t i = 0; i < read->hash_count; i++) {
            db_push_text(hashes, str_of(read->hashes[i], ADDRESS_HASH_LEN));
        }
    }
}

void recipients_read(RecipientsRead *read)
{
    Reading *r = arena_zalloc(read->arena, sizeof *r);
    r->read = read;
    buf_init(&r->out, RECIPIENTS_JSON_MAX);
    DbTxn *txn = db_txn_new(read->pool);
    db_txn_tenant(txn, read->tenant);
    people_sql_replan(txn);
    add_query(read, txn);
    db_txn_submit(txn, on_rows, r);
}
