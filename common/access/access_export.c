// SPDX-License-Identifier: Apache-2.0
#include "common/access/access_export.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/access/access_archive.h"
#include "common/access/access_log.h"
#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/bus/events/suppression_event.h"
#include "common/codec/event.h"
#include "common/session/stream_walk.h"
#include "stentor/v1/order.pb-c.h"
#include "stentor/v1/rendered.pb-c.h"
#include "stentor/v1/request.pb-c.h"

#define FORMAT "stentor.export/1"

// A column "sealed_<field>" holds a packed Sealed that is bound to the row's first column; a column
// "hidden_<name>" is for the merge with archived rows and not given.
typedef struct Section {
    const char *name;
    const char *sql;         // $1 tenant, $2 recipient id, $3 address hashes
    AccessArchived archived; // kind NULL: it is in Postgres alone
} Section;

// By the address only what went to the address alone while it was the person's: another recipient
// may have had it before, or has it now.
#define OF_PERSON                                                                                  \
    "tenant_id = $1 AND (recipient_id = $2 OR (coalesce(recipient_id, '') = ''"                    \
    " AND address_hash = ANY ($3::bytea[])"                                                        \
    " AND erasure.was_of($1, $2, address_hash, created_at)))"
// Of the table: its address as it is; of the answer: named as a sealed one.
#define NOTIFICATION_COLUMNS(ADDRESS)                                                              \
    "id, created_at, channel, category, priority, status, reason_code, reason, template,"          \
    " template_version, locale, recipient_id, " ADDRESS ", correlation_id,"                        \
    " source_event_id, source_event_type, batch_id, digest_window_id, copy_of, scheduled_for,"     \
    " expires_at, queued_at, rendered_at, sent_at, delivered_at, opened_at,"                       \
    " clicked_at, ended_at"
#define NOTIFICATIONS_OF(table)                                                                    \
    "SELECT " NOTIFICATION_COLUMNS("address") ", status_rank FROM " table " WHERE " OF_PERSON
#define ATTEMPT_COLUMNS                                                                            \
    "a.notification_id, a.attempt_number, a.channel, a.vendor, a.vendor_message_id, a.outcome,"    \
    " a.code, a.enhanced_code, a.reply, a.started_at, a.finished_at, a.was_unknown, "              \
    "a.retry_after_ms, a.segments, a.cost_micros, a.currency, a.calling_code, a.price_category, "  \
    "a.credential, a.route"

#define ATTEMPTS_OF(table)                                                                         \
    "SELECT " ATTEMPT_COLUMNS " FROM " table " a WHERE a.tenant_id = $1 AND (a.created_at,"        \
    " a.notification_id) IN (SELECT created_at, id FROM archiver.notifications WHERE " OF_PERSON   \
    " UNION SELECT created_at, id FROM archiver.late_notifications WHERE " OF_PERSON ")"

#define ORDERS_OF(table, total)                                                                    \
    "SELECT correlation_id::text AS correlation_id, order_id::text AS order_id, basket_id::text"   \
    " AS basket_id, current_state, " total " AS total_micros, currency, order_placed_date,"        \
    " finished_at, person AS sealed_person FROM order_saga." table " WHERE tenant_id = $1"         \
    " AND email_hash = ANY ($3::bytea[])"                                                          \
    " AND erasure.was_of($1, $2, email_hash, order_placed_date)"
#define ALL_ORDERS                                                                                 \
    ORDERS_OF("order_state", "(total_money * 1000000)::bigint")                                    \
    " UNION ALL " ORDERS_OF("order_archive", "total_micros") " UNION ALL " ORDERS_OF(              \
        "late_orders", "total_micros")
#define TRANSITIONS_OF(table, more)                                                                \
    "SELECT t.correlation_id::text AS correlation_id, t.consumed, t.message_id, t.event_type,"     \
    " t.from_state, t.to_state, t.received, t.reason FROM order_saga." table " t WHERE"            \
    " t.tenant_id = $1 AND t.correlation_id::text IN (SELECT correlation_id FROM own)" more

// clang-format off
static const Section sections[] = {
    {"subject",
     "SELECT recipient_id, identity_type, identity_id, name AS sealed_name, locale, time_zone, quiet_start, quiet_end, minor, guardian_id,"
     " guardian_routing, (SELECT array_to_string(array_agg(l.label ORDER BY l.label), ' ') FROM people.labels l WHERE l.tenant_id = r.tenant_id"
     " AND l.recipient_id = r.recipient_id) AS labels, unsubscribed_at, updated_at"
     " FROM people.recipients r WHERE tenant_id = $1 AND recipient_id = $2 AND $3::bytea[] IS NOT NULL", {0}},
    {"addresses",
     "SELECT recipient_id, channel, address AS sealed_address, status, verified, is_primary, label, encode(address_hash, 'hex') AS hash"
     " FROM people.addresses WHERE tenant_id = $1 AND recipient_id = $2 AND $3::bytea[] IS NOT NULL ORDER BY position", {0}},
    {"preferences",
     "SELECT category, channel, is_off, frequency, at_minute, on_weekday, is_cleared, updated_at FROM people.preferences"
     " WHERE tenant_id = $1 AND recipient_id = $2 AND $3::bytea[] IS NOT NULL ORDER BY category, channel", {0}},
    {"consents",
     "SELECT category, channel, is_granted, source, given_at FROM people.consents"
     " WHERE tenant_id = $1 AND recipient_id = $2 AND $3::bytea[] IS NOT NULL ORDER BY category, channel", {0}},
    // Of a month that is sealed, what came later is in the late table.
    {"notifications",
     "SELECT " NOTIFICATION_COLUMNS("address AS sealed_address") ", status_rank AS hidden_status_rank FROM (SELECT DISTINCT ON (id) * FROM ("
     NOTIFICATIONS_OF("archiver.notifications") " UNION ALL " NOTIFICATIONS_OF("archiver.late_notifications")
     ") both_tables ORDER BY id, status_rank DESC) newest ORDER BY id",
     {.kind = "notifications", .ordinal = "0", .recipient = "recipient_id", .hash = "address_hash", .time = "created_at", .key_columns = 1}},
    {"attempts",
     "SELECT * FROM (" ATTEMPTS_OF("archiver.delivery_attempts") " UNION " ATTEMPTS_OF("archiver.late_attempts")
     ") both_tables ORDER BY notification_id, attempt_number",
     {.kind = "notifications", .ordinal = "1", .of = "notifications", .key_columns = 2}},
    {"orders",
     "SELECT DISTINCT ON (correlation_id) * FROM (" ALL_ORDERS ") every_table ORDER BY correlation_id, finished_at DESC NULLS LAST",
     {.kind = "orders", .ordinal = "0", .hash = "email_hash", .time = "order_placed_date", .key_columns = 1}},
    {"order_transitions",
     "WITH own AS MATERIALIZED (" ALL_ORDERS ") " TRANSITIONS_OF("inbox_state", " AND t.verdict = 'applied'") " UNION "
     TRANSITIONS_OF("order_transitions", "") " UNION " TRANSITIONS_OF("late_transitions", "") " ORDER BY 1, 2, 3",
     {.kind = "orders", .ordinal = "1", .of = "orders", .key_columns = 3}},
};
// What was sealed under an address' key is the person's while the address was. Also: $4 key subjects of the recipient, $5 and of addresses.
static const Section inbox = {"inbox",
    "SELECT notification_id, category, template, content AS sealed_content, locale, direction, created_at, expires_at, fetched_at, seen_at,"
    " read_at, archived_at, clicked_at, snoozed_until FROM feed.items WHERE tenant_id = $1 AND key_subject = ANY ($5::bytea[])"
    " AND (key_subject = ANY ($4::bytea[]) OR (erasure.was_of($1, $2, recipient, created_at) AND $3::bytea[] IS NOT NULL))"
    " ORDER BY created_at, notification_id", {0}};
static const char WAS_OF[] =
    "SELECT erasure.was_of($1, $2, $3::bytea, to_timestamp($4::bigint / 1000000.0))";

const char *const access_tables[] = {
    "subject", "addresses", "preferences", "consents", "suppressions", "notifications", "attempts",
    "orders", "order_transitions", "inbox", "requests", "contents", "sources", "gaps", NULL};
// clang-format on

// ---- rows ----

enum { OID_BOOL = 16, OID_INT8 = 20, OID_INT2 = 21, OID_INT4 = 23, OID_TIMESTAMPTZ = 1184 };

// "2026-11-23 15:00:00.5+00" as RFC 3339.
static json_t *time_json(const char *text, Arena *arena)
{
    char *out = arena_cstr(arena, str_from(text));
    size_t len = strlen(out);
    if (len > 13) {
        out[10] = 'T';
    }
    if (len > 3 && strcmp(out + len - 3, "+00") == 0) {
        out[len - 3] = 'Z';
        out[len - 2] = '\0';
    }
    return json_string(out);
}

// Whose order it is, and what was ordered.
static json_t *order_json(Str plain, Arena *arena)
{
    const Stentor__V1__OrderRecipient *whose = (const Stentor__V1__OrderRecipient *)event_unpack(
        &stentor__v1__order_recipient__descriptor, plain, arena, NULL);
    if (whose == NULL) {
        return json_null();
    }
    json_t *lines = json_array();
    for (size_t i = 0; i < whose->n_lines; i++) {
        const Stentor__V1__OrderLine *line = whose->lines[i];
        (void)json_array_append_new(
            lines, json_pack(
                       "{s:s, s:s, s:I, s:I}", "product_id", line->product_id, "name", line->name,
                       "quantity", (json_int_t)line->quantity, "price_micros",
                       (json_int_t)line->price_micros));
    }
    return json_pack(
        "{s:s, s:s, s:o}", "email", whose->address, "name", whose->name, "lines", lines);
}

// An item of the inbox.
static json_t *item_json(Str plain, Arena *arena)
{
    const Stentor__V1__InappContent *content = (const Stentor__V1__InappContent *)event_unpack(
        &stentor__v1__inapp_content__descriptor, plain, arena, NULL);
    if (content == NULL) {
        return json_null();
    }
    json_t *data = json_loads(content->data_json, JSON_REJECT_DUPLICATES, NULL);
    return json_pack(
        "{s:s, s:s, s:o}", "title", content->title, "body", content->body, "data",
        data != NULL ? data : json_null());
}

json_t *access_opened(AccessExport *x, Str packed, Str id, const char *field, Arena *arena)
{
    Str plain = STR_EMPTY;
    bool order = strcmp(field, "person") == 0;
    bool item = strcmp(field, "content") == 0;
    const char *name = order ? "order.person" : item ? "feed" : field; // under which it is sealed
    const Stentor__V1__Sealed *sealed = (const Stentor__V1__Sealed *)event_unpack(
        &stentor__v1__sealed__descriptor, packed, arena, NULL);
    if (!person_keys_unseal(
            x->keys, str_from(x->person->tenant), id, name, sealed, arena, &plain)) {
        x->unreadable++;
        return json_null();
    }
    if (order) {
        return order_json(plain, arena);
    }
    if (item) {
        return item_json(plain, arena);
    }
    if (strcmp(field, "address") == 0) {
        const Stentor__V1__Address *address = (const Stentor__V1__Address *)event_unpack(
            &stentor__v1__address__descriptor, plain, arena, NULL);
        return address == NULL ? json_null() : json_string(address->address);
    }
    return json_stringn(plain.ptr, plain.len);
}

static json_t *value_json(AccessExport *x, const PGresult *rows, int row, int column, Arena *arena)
{
    const char *text = PQgetvalue(rows, row, column);
    if (PQgetisnull(rows, row, column) == 1) {
        return json_null();
    }
    if (strncmp(PQfname(rows, column), "sealed_", 7) == 0) {
        return access_opened(
            x, erasure_pg_get_bytes(rows, row, column, arena), str_from(PQgetvalue(rows, row, 0)),
            PQfname(rows, column) + 7, arena);
    }
    switch (PQftype(rows, column)) {
    case OID_BOOL:
        return json_boolean(text[0] == 't');
    case OID_INT2:
    case OID_INT4:
    case OID_INT8:
        return json_integer(strtoll(text, NULL, 10));
    case OID_TIMESTAMPTZ:
        return time_json(text, arena);
    default:
        return json_string(text);
    }
}

static json_t *row_json(AccessExport *x, const PGresult *rows, int row, Arena *arena)
{
    json_t *out = json_object();
    for (int column = 0; column < PQnfields(rows); column++) {
        access_set(
            x, out, access_plain_name(PQfname(rows, column)),
            value_json(x, rows, row, column, arena));
    }
    return out;
}

// Of the recipient's own keys, and not of those of an address: '{...}'.
static const char *own_subjects(const AccessExport *x, Arena *arena)
{
    static const DataKeyKind KINDS[] = {DATA_KEY_ORDINARY, DATA_KEY_RECORD};
    const ErasurePerson *person = x->person;
    Str out[2 * MASTER_KEYS_MAX];
    size_t count = 0;
    for (size_t i = 0; person->recipient_id[0] != '\0' && i < 2 * x->hash_keys.count; i++) {
        uint8_t *subject = arena_alloc(arena, KEY_SUBJECT_LEN);
        key_subject(
            x->hash_keys.keys[i / 2], KINDS[i % 2], str_from(person->tenant),
            str_from(person->recipient_id), subject);
        out[count++] = str_of(subject, KEY_SUBJECT_LEN);
    }
    return erasure_pg_bytes(out, count, arena);
}

static bool add_section(
    AccessExport *x, const Section *section, json_t *sources, Arena *arena, Error *err)
{
    const ErasurePerson *person = x->person;
    const char *params[] = {
        person->tenant, person->recipient_id,
        erasure_pg_bytes(person->hashes, person->hash_count, arena), own_subjects(x, arena),
        erasure_pg_bytes(person->subjects, person->subject_count, arena)};
    int count = section == &inbox ? 5 : 3;
    AUTO(PGresult) rows = erasure_pg_query(x->pg, section->sql, count, params, err);
    if (rows == NULL) {
        return error_wrap(err, "%s", section->name);
    }
    json_t *list = json_array();
    for (int i = 0; i < PQntuples(rows); i++) {
        access_append(x, list, row_json(x, rows, i, arena));
    }
    bool ok = section->archived.kind == NULL ||
              access_add_archived(
                  x, &(AccessArchive){&section->archived, rows, sources}, list, arena, err);
    json_object_set_new(x->root, section->name, list);
    access_end_section(x, section->name);
    return ok;
}

// ---- suppressions ----

typedef struct Suppressing {
    AccessExport *x;
    json_t *by_key; // the last message of a subject is its entry
    Arena *arena;
} Suppressing;

bool access_is_of_address(AccessExport *x, Str hash, int64_t at_us, Arena *arena)
{
    bool among = false;
    for (size_t i = 0; !among && i < x->person->hash_count; i++) {
        among = str_eq(x->person->hashes[i], hash);
    }
    if (!among || x->failed.kind != ERROR_NONE) {
        return false;
    }
    char hex[2 * ADDRESS_HASH_LEN + 1];
    hex_encode(hash.ptr, ADDRESS_HASH_LEN, hex);
    const char *params[] = {
        x->person->tenant, x->person->recipient_id, arena_printf(arena, "\\x%s", hex),
        arena_printf(arena, "%" PRId64, at_us)};
    AUTO(PGresult) row = erasure_pg_query(x->pg, WAS_OF, 4, params, &x->failed);
    return row != NULL && PQgetvalue(row, 0, 0)[0] == 't';
}

static json_t *suppression_row(const Stentor__V1__Suppression *entry)
{
    char created[CLOCK_RFC3339_SIZE] = "", released[CLOCK_RFC3339_SIZE] = "";
    clock_format(entry->created_at_us, created);
    if (entry->released_at_us != 0) {
        clock_format(entry->released_at_us, released);
    }
    const char *category = category_name((Category)entry->category);
    return json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "id", entry->id, "channel",
        channel_name((Channel)entry->channel), "category", category[0] != '\0' ? category : "any",
        "reason", suppression_reason_name((SuppressionReason)entry->reason), "created_at", created,
        "created_by", entry->created_by, "released_at", released);
}

static void on_suppression(void *ctx, const BusMessage *message)
{
    Suppressing *s = ctx;
    Str rest = message->subject, kind = STR_EMPTY, tenant = STR_EMPTY;
    (void)str_split(&rest, '.', &kind); // cfg.suppression.<tenant>.<key>
    (void)str_split(&rest, '.', &kind);
    (void)str_split(&rest, '.', &tenant);
    const Stentor__V1__Suppression *entry =
        suppression_read(tenant, rest, message->payload, s->arena, NULL);
    if (entry != NULL &&
        access_is_of_address(s->x, pb_bytes(entry->address_hash), entry->created_at_us, s->arena)) {
        int set =
            json_object_set_new(s->by_key, arena_cstr(s->arena, rest), suppression_row(entry));
        s->x->refused += set != 0;
    }
}

static bool add_suppressions(AccessExport *x, Arena *arena, Error *err)
{
    Suppressing s = {.x = x, .by_key = json_object(), .arena = arena};
    const char *filter = arena_printf(arena, "cfg.suppression.%s.>", x->person->tenant);
    bool ok = session_walk(x->session, "CONFIG", filter, on_suppression, &s, err);
    json_t *list = json_array();
    const char *key = NULL;
    json_t *row = NULL;
    json_object_foreach(s.by_key, key, row)
    {
        json_array_append(list, row);
    }
    json_object_set_new(x->root, "suppressions", list);
    access_end_section(x, "suppressions");
    json_decref(s.by_key);
    return ok;
}

// ---- where it is from, and what is missing ----

static void add_sources(AccessExport *x, const AccessLog *log)
{
    json_t *gaps = x->gaps;
    if (x->unreadable > 0) {
        json_array_append_new(
            gaps,
            json_pack(
                "{s:o, s:s, s:s}", "what",
                json_sprintf("%" PRIu64 " fields that no key opens: erased before", x->unreadable),
                "where", "", "sha256", ""));
    }
    if (x->storage == NULL) {
        json_array_append_new(
            gaps, json_pack(
                      "{s:s, s:s, s:s}", "what",
                      "requests that are in segments only: STENTOR_STORAGE_URL is not set", "where",
                      "", "sha256", ""));
    }
    json_object_set_new(x->root, "sources", json_incref(log->sources));
}

bool access_export(AccessExport *x, Error *err)
{
    char now[CLOCK_RFC3339_SIZE];
    clock_format(x->now_us, now);
    x->unreadable = 0;
    x->refused = 0;
    x->failed = (Error){0};
    x->gaps = json_array();
    x->root = json_pack(
        "{s:s, s:s, s:s, s:s, s:o}", "format", FORMAT, "exported_at", now, "tenant",
        x->person->tenant, "recipient_id", x->person->recipient_id, "gaps", x->gaps);
    Arena *arena = arena_new(0);
    AccessLog log = {.sources = json_array(), .requests = json_object()};
    AUTO(PGresult) zone = erasure_pg_query(x->pg, "SET TimeZone = 'UTC'", 0, NULL, err);
    bool ok = zone != NULL;
    for (size_t i = 0; ok && i < sizeof sections / sizeof *sections; i++) {
        ok = add_section(x, &sections[i], log.sources, arena, err);
    }
    ok = ok && add_section(x, &inbox, log.sources, arena, err) && add_suppressions(x, arena, err) &&
         access_log_read(x, &log, err);
    if (ok) {
        add_sources(x, &log);
    }
    if (ok && x->failed.kind != ERROR_NONE) {
        *err = x->failed;
        ok = false;
    }
    json_decref(log.sources);
    json_decref(log.requests);
    arena_free(arena);
    if (!ok) {
        json_decref(x->root);
        x->root = NULL;
        x->gaps = NULL;
    }
    return ok;
}
