// SPDX-License-Identifier: Apache-2.0
// In the order in which it happens: all lines are read, those of which a later one says the same
// address are passed over, the rest is published at once, and the answer comes with the last ack.
#include "services/gateway/suppressions/suppressions_import.h"

#include <string.h>

#include "common/api/suppress_line.h"
#include "common/base/clock.h"
#include "common/base/map.h"
#include "common/config/config_store.h"
#include "services/gateway/suppressions/suppression_put.h"

enum { ANSWER_MAX = 4 * 1024 * 1024 };

typedef struct Import Import;

typedef struct Line Line;

struct Line {
    Import *import;
    size_t number; // from 1, of the body
    const Stentor__V1__Suppression *entry;
    const char *error;  // NULL: none
    bool unchanged;     // it stands just so
    const Line *counts; // a later line of the same address; NULL: this one counts
};

struct Import {
    const SuppressionsApi *api;
    ApiCall *call;
    SuppressReading reading;
    bool dry_run;
    Line *lines; // but for those that are skipped
    size_t count, skipped, waiting;
    Error failure; // the first that is not a line's own fault
};

// ---- answering ----

static void answer(const Import *import)
{
    if (import->failure.kind != ERROR_NONE) {
        api_answer_failure(import->call, &import->failure);
        return;
    }
    Buf out;
    size_t failed = 0;
    size_t unchanged = 0;
    for (size_t i = 0; i < import->count; i++) {
        const Line *line = &import->lines[i];
        const Line *counts = line->counts != NULL ? line->counts : line;
        failed += line->error != NULL ? 1 : 0;
        unchanged += line->error == NULL && counts->unchanged ? 1 : 0;
    }
    buf_init(&out, ANSWER_MAX);
    buf_printf(
        &out, "{\"stored\":%zu,\"unchanged\":%zu,\"skipped\":%zu,\"failed\":%zu,\"errors\":[",
        import->count - failed - unchanged, unchanged, import->skipped, failed);
    const char *comma = "";
    for (size_t i = 0; i < import->count; i++) {
        if (import->lines[i].error != NULL) {
            buf_printf(&out, "%s{\"line\":%zu,\"error\":", comma, import->lines[i].number);
            buf_json(&out, str_from(import->lines[i].error));
            buf_char(&out, '}');
            comma = ",";
        }
    }
    buf_cstr(&out, "]}");
    http_respond(import->call->http, 200, "application/json", buf_view(&out));
    buf_done(&out);
}

// ---- storing ----

static const char *const BARRED = "it would end a suppression that a complaint or compliance made: "
                                  "the key lacks scope 'suppressions:release'";

// Another call came first, and this caller may have no right to end its entry.
static ConfigVerdict decide(void *ctx, uint64_t there)
{
    Line *line = ctx;
    const Import *import = line->import;
    if (!suppression_is_known(import->api->known, line->entry, there)) {
        return CONFIG_WAIT;
    }
    line->unchanged = suppressions_is_known(import->api, line->entry);
    bool may = line->unchanged || suppressions_may_replace(import->api, import->call, line->entry);
    line->error = may ? NULL : BARRED;
    return may && !line->unchanged ? CONFIG_PUT : CONFIG_LEAVE;
}

static void on_stored(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    const Line *line = ctx;
    Import *import = line->import;
    (void)sequence;
    (void)duplicate;
    if (err != NULL && import->failure.kind == ERROR_NONE) {
        import->failure = *err;
    }
    if (--import->waiting == 0) {
        answer(import);
    }
}

static void store(Import *import, Line *line)
{
    const Stentor__V1__Suppression *entry = line->entry;
    Arena *arena = import->call->http->arena;
    Error err = {0};
    ConfigStore put = {
        .replaces = suppressions_sequence(
            import->api->known, str_from(entry->tenant), (Channel)entry->channel,
            (Category)entry->category, entry->address_hash.data),
        .decide = decide,
        .done = on_stored,
        .ctx = line,
    };
    if (suppression_event(entry, arena, &put.out, &err)) {
        config_store(import->api->bus, &put, arena);
    } else {
        on_stored(line, &err, 0, false);
    }
}

static void store_all(Import *import)
{
    import->waiting = 1; // until all are on their way
    for (size_t i = 0; i < import->count; i++) {
        Line *line = &import->lines[i];
        if (line->error == NULL && line->counts == NULL && !line->unchanged) {
            import->waiting++;
            store(import, line);
        }
    }
    on_stored(&(Line){.import = import}, NULL, 0, false);
}

// ---- reading ----

// The last line of an address counts.
static void keep_last(Import *import)
{
    Map *seen = map_new(NULL);
    for (size_t i = import->count; i > 0; i--) {
        Line *line = &import->lines[i - 1];
        uint8_t key[SUPPRESSION_HASH_LEN + 2];
        if (line->error == NULL) {
            key[0] = (uint8_t)line->entry->channel;
            key[1] = (uint8_t)line->entry->category;
            memcpy(key + 2, line->entry->address_hash.data, SUPPRESSION_HASH_LEN);
            line->counts = map_get(seen, str_of(key, sizeof key));
            if (line->counts == NULL) {
                map_put(seen, str_of(key, sizeof key), line);
            }
        }
    }
    map_free(seen);
}

static void read_line(Import *import, size_t number, Str text)
{
    Arena *arena = import->call->http->arena;
    Error err = {0};
    SuppressLine said;
    Line *line = &import->lines[import->count];
    *line = (Line){.import = import, .number = number};
    if (text.len > SUPPRESS_LINE_MAX) {
        (void)error_set(&err, ERROR_PERMANENT, "longer than %d bytes", (int)SUPPRESS_LINE_MAX);
    } else if (suppress_line_parse(&import->reading, text, arena, &said, &err)) {
        int64_t now_us = import->call->http->received_at_us;
        if (said.released || (said.expires_at_us != 0 && said.expires_at_us <= now_us)) {
            import->skipped++;
            return;
        }
        line->entry =
            suppress_line_entry(&said, import->reading.tenant, now_us, import->call->key_id, arena);
        line->unchanged = suppressions_is_known(import->api, line->entry);
        bool may =
            line->unchanged || suppressions_may_replace(import->api, import->call, line->entry);
        line->error = may ? NULL : BARRED;
    }
    if (err.kind != ERROR_NONE) {
        line->error = arena_cstr(arena, str_from(err.text));
    }
    import->count++;
}

static bool refuse(Import *import, const char *detail)
{
    Problem problem = {.status = 422, .slug = "invalid-body", .title = "The body is not valid"};
    (void)str_to_c(str_from(detail), problem.detail, sizeof problem.detail);
    api_answer_problem(import->call, &problem);
    return false;
}

// false: answered.
static bool read_lines(Import *import)
{
    HttpRequest *http = import->call->http;
    Str rest = http->body;
    Str text = STR_EMPTY;
    size_t number = 0;
    import->lines = arena_array(http->arena, SUPPRESSIONS_IMPORT_LINES, sizeof *import->lines);
    while (str_split(&rest, '\n', &text)) {
        text = str_trim(text);
        number++;
        if (text.len > 0 && import->count + import->skipped == SUPPRESSIONS_IMPORT_LINES) {
            return refuse(import, "more than 1000 lines in one request");
        }
        if (text.len > 0) {
            read_line(import, number, text);
        }
    }
    return number > 0 || refuse(import, "the body has no lines");
}

// What a line leaves out. false: answered.
static bool read_defaults(Import *import)
{
    HttpRequest *http = import->call->http;
    SuppressLine *defaults = &import->reading.defaults;
    const char *field = NULL;
    Str channel = http_query(http, "channel");
    Str category = http_query(http, "category");
    Str reason = http_query(http, "reason");
    Str expires = http_query(http, "expires_at");
    *defaults = (SuppressLine){
        .channel = CHANNEL_EMAIL,
        .reason = SUPPRESSION_MANUAL,
        .note = http_query(http, "note"),
        .address = STR_EMPTY,
    };
    bool any = category.len == 0 || str_eq(category, STR("any"));
    if (channel.len > 0 && !channel_from_name(channel, &defaults->channel)) {
        field = "channel";
    } else if (!any && !category_from_name(category, &defaults->category)) {
        field = "category";
    } else if (reason.len > 0 && !suppression_reason_from_name(reason, &defaults->reason)) {
        field = "reason";
    } else if (expires.len > 0 && !clock_parse(expires, &defaults->expires_at_us)) {
        field = "expires_at";
    } else if (defaults->note.len > SUPPRESSION_NOTE_MAX) {
        field = "note";
    }
    if (field != NULL) {
        (void)api_refuse_field(
            import->call, field, "not a value that POST /v1/suppressions takes in this field");
    }
    return field == NULL;
}

void suppressions_import(ApiCall *call)
{
    Import *import = arena_zalloc(call->http->arena, sizeof *import);
    import->api = call->ctx;
    import->call = call;
    import->dry_run = str_eq(http_query(call->http, "dry_run"), STR("true"));
    import->reading.tenant = str_from(call->tenant);
    import->reading.hash_key = import->api->hash_keys.keys[0];
    if (!read_defaults(import) || !read_lines(import)) {
        return;
    }
    keep_last(import);
    if (import->dry_run) {
        answer(import);
    } else {
        store_all(import);
    }
}
