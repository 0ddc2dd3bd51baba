// SPDX-License-Identifier: Apache-2.0
// POST /v1/dead-letters/resend: a dry run counts what a filter selects, and the real one does
// exactly what was counted (`until`, `count`), or nothing.
#include <inttypes.h>
#include <stdlib.h>

#include "common/base/map.h"
#include "services/gateway/deadletters/dead_letters_internal.h"

enum { REASONS_MAX = 16 };

typedef struct Refused {
    const char *why;
    uint64_t count;
} Refused;

typedef struct BulkCall {
    ApiCall *call;
    LetterFilter filter;
    ResendRules rules;
    bool dry_run, may_double;
    int64_t until, wanted; // of the dry run; 0 and -1: not said
    uint64_t by_class[LETTER_STAYS + 1];
    uint64_t last; // that matched
    bool cut;      // more than one call resends
    Refused refused[REASONS_MAX];
    size_t refused_count;
    uint64_t sequences[DEAD_LETTERS_RESEND_MAX];
    int64_t stored_us[DEAD_LETTERS_RESEND_MAX];
    size_t count;
} BulkCall;

// ---- counting ----

// The same words are one reason; those beyond REASONS_MAX count in `refused` alone.
static void count_refused(BulkCall *bulk, const char *why)
{
    size_t i = 0;
    while (i < bulk->refused_count && !str_eq(str_from(bulk->refused[i].why), str_from(why))) {
        i++;
    }
    if (i == REASONS_MAX) {
        return;
    }
    if (i == bulk->refused_count) {
        bulk->refused[bulk->refused_count++].why =
            arena_cstr(bulk->call->http->arena, str_from(why));
    }
    bulk->refused[i].count++;
}

static bool on_letter(void *ctx, const Letter *letter, Arena *arena)
{
    BulkCall *bulk = ctx;
    Error why = {0};
    if (!letter_matches(&bulk->filter, letter)) {
        return bulk->filter.until == 0 || letter->sequence < bulk->filter.until;
    }
    LetterClass class = letter_class(letter, &bulk->rules, arena, &why);
    bool goes = class == LETTER_SAFE || (class == LETTER_DOUBLES && bulk->may_double);
    if (goes && bulk->count == DEAD_LETTERS_RESEND_MAX) {
        bulk->cut = true;
        return false;
    }
    bulk->by_class[class]++;
    bulk->last = letter->sequence;
    if (goes) {
        bulk->sequences[bulk->count] = letter->sequence;
        bulk->stored_us[bulk->count++] = letter->stored_at_us;
    } else if (class == LETTER_STAYS) {
        count_refused(bulk, why.text);
    }
    return true;
}

static json_t *counts_json(const BulkCall *bulk)
{
    json_t *refusals = json_array();
    for (size_t i = 0; i < bulk->refused_count; i++) {
        (void)json_array_append_new(
            refusals, json_pack(
                          "{s:o, s:I}", "why", letter_text(str_from(bulk->refused[i].why)),
                          "letters", (json_int_t)bulk->refused[i].count));
    }
    uint64_t letters = 0;
    json_t *object = json_object();
    for (LetterClass class = LETTER_SAFE; class <= LETTER_STAYS; class ++) {
        letters += bulk->by_class[class];
        (void)json_object_set_new(
            object, letter_class_name(class), json_integer((json_int_t)bulk->by_class[class]));
    }
    (void)json_object_set_new(object, "letters", json_integer((json_int_t)letters));
    (void)json_object_set_new(object, "count", json_integer((json_int_t)bulk->count));
    (void)json_object_set_new(object, "until", json_integer((json_int_t)bulk->last));
    (void)json_object_set_new(object, "refusals", refusals);
    return object;
}

// ---- doing ----

static void on_resent(void *ctx, size_t requested)
{
    BulkCall *bulk = ctx;
    json_t *object = counts_json(bulk);
    (void)json_object_set_new(object, "dry_run", json_false());
    (void)json_object_set_new(object, "requested", json_integer((json_int_t)requested));
    api_answer_json(bulk->call, 202, object);
}

static void resend(BulkCall *bulk)
{
    ApiCall *call = bulk->call;
    if (bulk->count != (size_t)bulk->wanted) {
        metric_add(call->metrics->refused[REFUSED_CONFLICT], 1);
        http_problem(
            call->http, 409, "count-changed", "Other dead letters than were counted", "count",
            "%zu dead letters up to %" PRId64 " would be sent again, not %" PRId64
            "; nothing was done, run it dry once more",
            bulk->count, bulk->until, bulk->wanted);
        return;
    }
    Resending *resending = arena_zalloc(call->http->arena, sizeof *resending);
    *resending = (Resending){
        .call = call,
        .sequences = bulk->sequences,
        .stored_us = bulk->stored_us,
        .count = bulk->count,
        .notification_id = "",
        .may_double = bulk->may_double,
        .ignore_expiry = bulk->rules.ignore_expiry,
        .done = on_resent,
        .ctx = bulk,
    };
    dead_letters_resend(resending);
}

static void on_scanned(void *ctx, const LetterScanEnd *end, const Error *err)
{
    BulkCall *bulk = ctx;
    if (err != NULL) {
        api_answer_failure(bulk->call, err);
    } else if (!bulk->dry_run) {
        resend(bulk);
    } else {
        bool reached = bulk->filter.until > 0 && end->last >= bulk->filter.until;
        json_t *object = counts_json(bulk);
        (void)json_object_set_new(object, "dry_run", json_true());
        (void)json_object_set_new(
            object, "complete", json_boolean(!bulk->cut && (end->whole || reached)));
        api_answer_json(bulk->call, 200, object);
    }
}

// ---- the body ----

static bool read_body(BulkCall *bulk)
{
    ApiBody body = {0};
    ApiCall *call = bulk->call;
    bool ok = api_body_parse(&body, call->http->body, call->http->arena);
    if (ok) {
        (void)dead_letters_read_filter(&body, &bulk->filter);
        (void)api_read_bool(&body, "dry_run", &bulk->dry_run);
        (void)api_read_bool(&body, "may_double", &bulk->may_double);
        (void)api_read_bool(&body, "ignore_expiry", &bulk->rules.ignore_expiry);
        (void)api_read_int(&body, "until", 1, INT64_MAX, &bulk->until);
        (void)api_read_int(&body, "count", 0, DEAD_LETTERS_RESEND_MAX, &bulk->wanted);
        if (api_body_good(&body) && !bulk->dry_run && bulk->until == 0) {
            (void)api_body_fail(
                &body, "until", "required with dry_run false: the `until` of the dry run");
        }
        if (api_body_good(&body) && !bulk->dry_run && bulk->wanted < 0) {
            (void)api_body_fail(
                &body, "count", "required with dry_run false: the `count` of the dry run");
        }
        ok = api_body_end(&body);
    }
    if (!ok) {
        api_answer_problem(call, &body.problem);
    }
    api_body_free(&body);
    bulk->filter.until = (uint64_t)bulk->until;
    return ok;
}

static void post_resend(ApiCall *call)
{
    DeadLettersApi *api = call->ctx;
    BulkCall *bulk = arena_zalloc(call->http->arena, sizeof *bulk);
    bulk->call = call;
    bulk->rules = dead_letters_rules(call);
    bulk->dry_run = true;
    bulk->wanted = -1;
    if (!read_body(bulk)) {
        return;
    }
    const LetterScanOptions options = {
        .bus = api->bus,
        .tenant = str_from(call->tenant),
        .stage = bulk->filter.stage,
        .since_us = bulk->filter.since_us,
        .each = on_letter,
        .done = on_scanned,
        .ctx = bulk,
    };
    if (!letter_scan(&api->scans, &options)) {
        dead_letters_answer_busy(call);
    }
}

static const ApiRoute ROUTES[] = {
    {"POST", "/v1/dead-letters/resend", SCOPE_DEAD_RESEND, post_resend, NULL, false},
};

void dead_letters_bulk_add(Api *api, DeadLettersApi *letters)
{
    api_add(api, ROUTES, sizeof ROUTES / sizeof ROUTES[0], letters);
}
