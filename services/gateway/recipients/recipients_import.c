// SPDX-License-Identifier: Apache-2.0
// POST /v1/recipients/import: NDJSON, a recipient a line. A wrong line gets its error, the others
// are stored. Without an id the recipient gets one that is derived from the identity or the first
// address, so a request that is repeated (no answer, a 503) makes no recipient twice.
#include <string.h>

#include "common/codec/hash.h"
#include "common/recipients/people_sql.h"
#include "services/gateway/recipients/recipients_api.h"
#include "services/gateway/recipients/recipients_read.h"
#include "services/gateway/recipients/shared_addresses.h"

enum {
    LINES_MAX = 1000,
    FACTS_MAX = 5000, // of one request: records, preferences and consents
    ANSWER_MAX = 1024 * 1024,
};

typedef struct Line {
    size_t number; // from 1
    PersonLine person;
    Problem problem;     // status 0: none
    const char *warning; // of a line that is stored; NULL: none
    size_t first_fact;
    size_t fact_count;
} Line;

typedef struct Import {
    RecipientsApi *api;
    ApiCall *base;
    Line *lines; // those that are not blank
    size_t count;
    SharedOwner *owners; // one for each
    PersonFact *facts;
    size_t fact_count;
    RecipientsWrite write;
} Import;

// ---- answering ----

static void put_line(const Line *line, Buf *out)
{
    buf_printf(out, "{\"line\":%zu", line->number);
    if (line->problem.status == 0) {
        buf_cstr(out, ",\"id\":");
        buf_json(out, line->person.id);
        if (line->warning != NULL) {
            buf_cstr(out, ",\"warning\":");
            buf_json(out, str_from(line->warning));
        }
    } else {
        if (line->problem.field[0] != '\0') {
            buf_cstr(out, ",\"field\":");
            buf_json(out, str_from(line->problem.field));
        }
        buf_cstr(out, ",\"error\":");
        buf_json(out, str_from(line->problem.detail));
    }
    buf_char(out, '}');
}

static void answer(const Import *import)
{
    size_t failed = 0;
    for (size_t i = 0; i < import->count; i++) {
        failed += import->lines[i].problem.status != 0;
    }
    Buf out;
    buf_init(&out, ANSWER_MAX);
    buf_printf(
        &out, "{\"stored\":%zu,\"failed\":%zu,\"results\":[", import->count - failed, failed);
    for (size_t i = 0; i < import->count; i++) {
        buf_cstr(&out, i > 0 ? "," : "");
        put_line(&import->lines[i], &out);
    }
    buf_cstr(&out, "]}");
    http_respond(import->base->http, 200, "application/json", buf_view(&out));
    buf_done(&out);
}

// What may succeed when it is repeated makes the whole a 503: the repeat is harmless.
static void on_written(void *ctx, const Error *err)
{
    Import *import = ctx;
    for (size_t i = 0; err == NULL && i < import->count; i++) {
        Line *line = &import->lines[i];
        for (size_t n = 0; err == NULL && n < line->fact_count; n++) {
            const Error *failed = &import->facts[line->first_fact + n].error;
            if (failed->kind == ERROR_PERMANENT) {
                line->problem = (Problem){.status = 422, .slug = "invalid-field", .title = ""};
                (void)snprintf(
                    line->problem.detail, sizeof line->problem.detail, "%.*s",
                    (int)sizeof line->problem.detail - 1, failed->text);
            } else if (failed->kind != ERROR_NONE) {
                err = failed;
            }
        }
    }
    if (err != NULL) {
        api_answer_failure(import->base, err);
    } else {
        answer(import);
    }
}

// ---- facts ----

static PersonFact *add_fact(Import *import, Line *line, PersonPart part)
{
    PersonFact *fact = &import->facts[import->fact_count++];
    *fact = (PersonFact){.recipient_id = line->person.id, .part = part};
    line->fact_count++;
    return fact;
}

static void add_line(Import *import, Line *line)
{
    const PersonLine *person = &line->person;
    size_t wanted = 1 + person->preference_count + person->consent_count;
    if (import->fact_count + wanted > FACTS_MAX) {
        line->problem = (Problem){
            .status = 422,
            .detail = "more than 5000 records, preferences and consents in one request"};
        return;
    }
    line->first_fact = import->fact_count;
    add_fact(import, line, PERSON_RECORD)->record = &person->record;
    for (size_t i = 0; i < person->preference_count; i++) {
        add_fact(import, line, PERSON_PREFERENCE)->preference = person->preferences[i];
    }
    for (size_t i = 0; i < person->consent_count; i++) {
        add_fact(import, line, PERSON_CONSENT)->consent = person->consents[i];
    }
}

static void write_lines(Import *import)
{
    import->facts = arena_array(import->base->http->arena, FACTS_MAX, sizeof *import->facts);
    for (size_t i = 0; i < import->count; i++) {
        if (import->lines[i].problem.status == 0) {
            add_line(import, &import->lines[i]);
        }
    }
    if (import->fact_count == 0) {
        answer(import);
        return;
    }
    import->write = recipients_api_write_of(import->base);
    import->write.facts = import->facts;
    import->write.count = import->fact_count;
    import->write.done = on_written;
    import->write.ctx = import;
    recipients_write(&import->write);
}

// ---- addresses that another recipient has ----

static void take_shared_line(
    const Import *import, Line *line, const SharedOwner *owner, bool refuse)
{
    Arena *arena = import->base->http->arena;
    char field[SHARED_FIELD_SIZE];
    char text[SHARED_TEXT_SIZE];
    shared_addresses_field(owner, field);
    shared_addresses_text(owner, text);
    if (!refuse) {
        line->warning = arena_printf(arena, "%s: %s", field, text);
        return;
    }
    problem_add(&line->problem, arena, field, text);
}

static void take_shared(Import *import)
{
    Str tenant = str_from(import->base->tenant);
    bool refuse = catalog_tenant(import->api->catalog, tenant)->shared_addresses ==
                  STENTOR__V1__SHARED_ADDRESSES__SHARED_ADDRESSES_REFUSE;
    shared_addresses_among(import->api, tenant, import->owners, import->count);
    for (size_t i = 0; i < import->count; i++) {
        if (import->owners[i].other.len > 0) {
            take_shared_line(import, &import->lines[i], &import->owners[i], refuse);
        }
    }
    write_lines(import);
}

static void on_shared(void *ctx, DbTxn *txn, const Error *err)
{
    Import *import = ctx;
    if (err != NULL) {
        api_answer_failure(import->base, err);
        return;
    }
    shared_addresses_read(
        db_txn_result(txn, 1), import->owners, import->count, import->base->http->arena);
    take_shared(import);
}

static void look_up_shared(Import *import)
{
    Arena *arena = import->base->http->arena;
    Str tenant = str_from(import->base->tenant);
    import->owners = arena_array(arena, import->count, sizeof *import->owners);
    for (size_t i = 0; i < import->count; i++) {
        Line *line = &import->lines[i];
        import->owners[i] = (SharedOwner){
            .id = line->person.id,
            .record = line->problem.status == 0 ? &line->person.record : NULL,
        };
    }
    DbTxn *txn = db_txn_new(import->api->pool);
    db_txn_tenant(txn, tenant);
    people_sql_replan(txn);
    if (catalog_tenant(import->api->catalog, tenant)->shared_addresses ==
            STENTOR__V1__SHARED_ADDRESSES__SHARED_ADDRESSES_ALLOW ||
        !shared_addresses_ask(import->api, tenant, import->owners, import->count, txn)) {
        db_txn_abandon(txn);
        write_lines(import);
        return;
    }
    db_txn_submit(txn, on_shared, import);
}

// ---- who it is ----

static bool by_identity(const Line *line)
{
    return line->problem.status == 0 && line->person.id.len == 0 &&
           line->person.record.identity_id.len > 0;
}

static void derive_id(const Import *import, Line *line)
{
    Arena *arena = import->base->http->arena;
    Str hash_key = recipients_api_hash_key(import->api);
    Str tenant = str_from(import->base->tenant);
    const PersonRecord *record = &line->person.record;
    char *id = arena_alloc(arena, ID_SIZE);
    if (record->identity_id.len > 0) {
        const char *cause = arena_printf(
            arena, "%s|" STR_FMT, identity_name(record->identity), STR_ARG(record->identity_id));
        person_derive_id(hash_key, tenant, "identity", str_from(cause), id);
    } else {
        uint8_t hash[ADDRESS_HASH_LEN];
        char hex[2 * ADDRESS_HASH_LEN + 1];
        const PersonAddress *first = &record->addresses[0];
        address_hash(hash_key, tenant, first->channel, first->address, hash);
        hex_encode(hash, sizeof hash, hex);
        person_derive_id(hash_key, tenant, "address", str_from(hex), id);
    }
    line->person.id = str_from(id);
}

// A recipient whose identity is in the tables keeps the stored id.
static void take_known(Import *import, const PGresult *rows)
{
    Arena *arena = import->base->http->arena;
    for (int row = 0; row < db_rows(rows); row++) {
        for (size_t i = 0; i < import->count; i++) {
            Line *line = &import->lines[i];
            if (by_identity(line) &&
                str_eq(
                    db_get_text(rows, row, 0),
                    str_from(identity_name(line->person.record.identity))) &&
                str_eq(db_get_text(rows, row, 1), line->person.record.identity_id)) {
                line->person.id = arena_str(arena, db_get_text(rows, row, 2));
            }
        }
    }
}

static void derive_and_write(Import *import)
{
    for (size_t i = 0; i < import->count; i++) {
        Line *line = &import->lines[i];
        if (line->problem.status == 0 && line->person.id.len == 0) {
            derive_id(import, line);
        }
    }
    look_up_shared(import);
}

static void on_identities(void *ctx, DbTxn *txn, const Error *err)
{
    Import *import = ctx;
    if (err != NULL) {
        api_answer_failure(import->base, err);
        return;
    }
    take_known(import, db_txn_result(txn, 1));
    derive_and_write(import);
}

static void look_up_identities(Import *import)
{
    DbTxn *txn = db_txn_new(import->api->pool);
    db_txn_tenant(txn, str_from(import->base->tenant));
    people_sql_replan(txn);
    DbParams *p = db_txn_add(txn, &people_identities_sql, NULL);
    db_text(p, str_from(import->base->tenant));
    DbArray *types = db_array(p, DB_TEXT);
    DbArray *ids = db_array(p, DB_TEXT);
    size_t asked = 0;
    for (size_t i = 0; i < import->count; i++) {
        if (by_identity(&import->lines[i])) {
            const PersonRecord *record = &import->lines[i].person.record;
            db_push_text(types, str_from(identity_name(record->identity)));
            db_push_text(ids, record->identity_id);
            asked++;
        }
    }
    if (asked == 0) {
        db_txn_abandon(txn);
        derive_and_write(import);
    } else {
        db_txn_submit(txn, on_identities, import);
    }
}

// ---- reading ----

static bool read_lines(Import *import)
{
    const HttpRequest *http = import->base->http;
    Str rest = http->body;
    Str text = STR_EMPTY;
    import->lines = arena_array(http->arena, LINES_MAX, sizeof *import->lines);
    for (size_t number = 1; str_split(&rest, '\n', &text); number++) {
        text = str_trim(text);
        if (text.len == 0) {
            continue;
        }
        if (import->count == LINES_MAX) {
            return false;
        }
        Line *line = &import->lines[import->count++];
        line->number = number;
        (void)person_line_read(
            text, http->received_at_us, http->arena, &line->person, &line->problem);
    }
    return true;
}

void recipients_api_import(ApiCall *call)
{
    Import *import = arena_zalloc(call->http->arena, sizeof *import);
    import->api = call->ctx;
    import->base = call;
    if (!recipients_api_writable(call)) {
        return;
    }
    if (!read_lines(import) || import->count == 0) {
        Problem problem = {
            .status = 422,
            .slug = "invalid-body",
            .title = "The body is not valid",
            .detail = "1 to 1000 lines, each a JSON object",
        };
        api_answer_problem(call, &problem);
        return;
    }
    look_up_identities(import);
}
