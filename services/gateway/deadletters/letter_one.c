// SPDX-License-Identifier: Apache-2.0
// One dead letter: shown, sent again, dropped; and a notification's last one sent again.
#include <inttypes.h>
#include <stdlib.h>

#include "common/base/crash.h"
#include "common/deadletter/dead_note.h"
#include "common/deadletter/dlq_end.h"
#include "common/deadletter/store.h"
#include "services/gateway/deadletters/dead_letters_internal.h"

// Clocks: a notification's id and DEAD have each their own.
static const int64_t SKEW_US = INT64_C(3600) * 1000000;

typedef struct OneCall {
    ApiCall *call;
    const DeadLettersApi *api;
    uint64_t sequence;
    int64_t stored_us;
    bool may_double, ignore_expiry;
    Str notification_id; // of POST /v1/notifications/{}/resend; empty: of a letter
    const Letter *letter;
    BusOut end;
} OneCall;

static OneCall *new_call(ApiCall *call)
{
    OneCall *one = arena_zalloc(call->http->arena, sizeof *one);
    one->call = call;
    one->api = call->ctx;
    return one;
}

// ---- GET /v1/dead-letters/{} ----

static void show(void *ctx, const Letter *letter)
{
    ApiCall *call = ctx;
    ResendRules rules = dead_letters_rules(call);
    api_answer_json(call, 200, letter_view_whole(letter, &rules, call->http->arena));
}

static void get_letter(ApiCall *call)
{
    uint64_t sequence = 0;
    if (dead_letters_sequence(call, &sequence)) {
        dead_letters_fetch(call, sequence, show, call);
    }
}

// ---- POST /v1/dead-letters/{}/resend ----

static void on_resent(void *ctx, size_t requested)
{
    const OneCall *one = ctx;
    (void)requested;
    json_t *object = json_pack("{s:I}", "sequence", (json_int_t)one->sequence);
    const char *id = one->letter->notification_id;
    (void)json_object_set_new(
        object, "notification_id", id[0] != '\0' ? letter_text(str_from(id)) : json_null());
    api_answer_json(one->call, 202, object);
}

static bool may_go(OneCall *one)
{
    ApiCall *call = one->call;
    ResendRules rules = dead_letters_rules(call);
    Error why = {0};
    rules.ignore_expiry = one->ignore_expiry;
    LetterClass class = letter_class(one->letter, &rules, call->http->arena, &why);
    if (class == LETTER_SAFE || (class == LETTER_DOUBLES && one->may_double)) {
        return true;
    }
    metric_add(call->metrics->refused[REFUSED_CONFLICT], 1);
    http_problem(
        call->http, 409, "resend-refused", "The dead letter is not sent again",
        class == LETTER_DOUBLES ? "may_double" : NULL, "%s", why.text);
    return false;
}

static void resend_letter(void *ctx, const Letter *letter)
{
    OneCall *one = ctx;
    one->letter = letter;
    one->stored_us = letter->stored_at_us;
    if (!may_go(one)) {
        return;
    }
    Resending *resending = arena_zalloc(one->call->http->arena, sizeof *resending);
    *resending = (Resending){
        .call = one->call,
        .sequences = &one->sequence,
        .stored_us = &one->stored_us,
        .count = 1,
        .notification_id = letter->notification_id,
        .may_double = one->may_double,
        .ignore_expiry = one->ignore_expiry,
        .done = on_resent,
        .ctx = one,
    };
    dead_letters_resend(resending);
}

// An empty body leaves both flags at false.
static bool read_flags(OneCall *one)
{
    ApiBody body = {0};
    ApiCall *call = one->call;
    if (call->http->body.len == 0) {
        return true;
    }
    bool ok = api_body_parse(&body, call->http->body, call->http->arena);
    if (ok) {
        (void)api_read_bool(&body, "may_double", &one->may_double);
        (void)api_read_bool(&body, "ignore_expiry", &one->ignore_expiry);
        ok = api_body_end(&body);
    }
    if (!ok) {
        api_answer_problem(call, &body.problem);
    }
    api_body_free(&body);
    return ok;
}

static void post_resend(ApiCall *call)
{
    OneCall *one = new_call(call);
    if (dead_letters_sequence(call, &one->sequence) && read_flags(one)) {
        dead_letters_fetch(call, one->sequence, resend_letter, one);
    }
}

// ---- DELETE /v1/dead-letters/{} ----

static void on_letter_deleted(void *ctx, Str reply, const Error *err)
{
    const OneCall *one = ctx;
    Error refusal = {0};
    if (err == NULL && !letter_deleted(reply, &refusal) && refusal.kind != ERROR_CONFLICT) {
        err = &refusal;
    }
    if (err != NULL) {
        api_answer_failure(one->call, err);
    } else {
        http_respond(one->call->http, 204, NULL, STR_EMPTY);
    }
}

static void on_end_stored(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    OneCall *one = ctx;
    (void)sequence, (void)duplicate;
    if (err != NULL) {
        api_answer_failure(one->call, err);
        return;
    }
    CRASH_POINT("gateway.end_stored");
    letter_delete(one->api->bus, one->sequence, true, on_letter_deleted, one);
}

static void on_drop_noted(void *ctx, const Error *err, const AuditHead *head)
{
    OneCall *one = ctx;
    (void)head;
    if (err != NULL) {
        api_answer_failure(one->call, err);
    } else if (one->end.subject != NULL) {
        bus_publish(one->api->bus, &one->end, on_end_stored, one);
    } else {
        letter_delete(one->api->bus, one->sequence, true, on_letter_deleted, one);
    }
}

static void drop_letter(void *ctx, const Letter *letter)
{
    OneCall *one = ctx;
    ApiCall *call = one->call;
    Error err = {0};
    bool needed = false;
    if (!letter_end(letter, call->http->arena, &one->end, &needed, &err)) {
        api_answer_failure(call, &err);
        return;
    }
    const DeadNote note = {
        .drop = true,
        .tenant = call->tenant,
        .actor = api_caller_name(call),
        .request_id = call->http->id,
        .program = "stentor-gateway",
        .notification_id = letter->notification_id,
        .sequences = &one->sequence,
        .count = 1,
        .at_us = call->http->received_at_us,
    };
    dead_note_append(one->api->audit, &note, on_drop_noted, one);
}

static void delete_letter(ApiCall *call)
{
    OneCall *one = new_call(call);
    if (dead_letters_sequence(call, &one->sequence)) {
        dead_letters_fetch(call, one->sequence, drop_letter, one);
    }
}

// ---- POST /v1/notifications/{}/resend ----

// clang-format off
static const DbStatement STATUS_OF = {"dead_letter_status",
    "SELECT status FROM stentor.notification_shown($1::text, $2::timestamptz, $3::text)"};
static const DbStatement ACCEPTED = {"dead_letter_accepted",
    "SELECT 1 FROM ingest.accepted_events($1::text, $2::timestamptz, $3::text)"};
// clang-format on

static void answer_unknown(const OneCall *one)
{
    api_answer_missing(
        one->call, arena_printf(
                       one->call->http->arena, "notification '" STR_FMT "'",
                       STR_ARG(str_slice(one->notification_id, 0, LETTER_WORD_MAX))));
}

static void on_looked(void *ctx, DbTxn *txn, const Error *err)
{
    const OneCall *one = ctx;
    if (err != NULL) {
        api_answer_failure(one->call, err);
        return;
    }
    const PGresult *shown = db_txn_result(txn, 0);
    bool known = db_rows(shown) > 0;
    if (!known && db_rows(db_txn_result(txn, 1)) == 0) {
        answer_unknown(one);
        return;
    }
    Str status = known ? db_get_text(shown, 0, 0) : STR("queued");
    metric_add(one->call->metrics->refused[REFUSED_CONFLICT], 1);
    http_problem(
        one->call->http, 409, "nothing-to-resend", "The notification has no dead letter", NULL,
        "it is '" STR_FMT "'; only one that a stage gave up is sent again, and its dead letter "
        "may follow its status by a second",
        STR_ARG(status));
}

static void look(OneCall *one)
{
    static const DbStatement *const QUESTIONS[] = {&STATUS_OF, &ACCEPTED};
    int64_t created_ms = 0;
    (void)id_parse(one->notification_id, "ntf_", &created_ms);
    DbTxn *txn = db_txn_new(one->api->pool);
    for (size_t i = 0; i < 2; i++) {
        DbParams *p = db_txn_add(txn, QUESTIONS[i], NULL);
        db_text(p, str_from(one->call->tenant));
        db_time(p, created_ms * 1000);
        db_text(p, one->notification_id);
    }
    db_txn_submit(txn, on_looked, one);
}

// The last one counts: a mail that failed again has a later letter.
static bool on_letter(void *ctx, const Letter *letter, Arena *arena)
{
    OneCall *one = ctx;
    (void)arena;
    if (letter_holds_work(letter) &&
        str_eq(str_from(letter->notification_id), one->notification_id)) {
        one->sequence = letter->sequence;
    }
    return true;
}

static void on_scanned(void *ctx, const LetterScanEnd *end, const Error *err)
{
    OneCall *one = ctx;
    if (err != NULL) {
        api_answer_failure(one->call, err);
    } else if (!end->whole) {
        api_answer_unavailable(
            one->call, "there are too many dead letters since then to look through; POST "
                       "/v1/dead-letters/{sequence}/resend names one");
    } else if (one->sequence == 0) {
        look(one);
    } else {
        dead_letters_fetch(one->call, one->sequence, resend_letter, one);
    }
}

static void post_notification_resend(ApiCall *call)
{
    OneCall *one = new_call(call);
    DeadLettersApi *api = call->ctx;
    int64_t created_ms = 0;
    one->notification_id = call->params[0];
    if (!id_parse(one->notification_id, "ntf_", &created_ms) || created_ms == 0) {
        answer_unknown(one);
        return;
    }
    const LetterScanOptions options = {
        .bus = api->bus,
        .tenant = str_from(call->tenant),
        .since_us = created_ms * 1000 > SKEW_US ? created_ms * 1000 - SKEW_US : 0,
        .each = on_letter,
        .done = on_scanned,
        .ctx = one,
    };
    if (read_flags(one) && !letter_scan(&api->scans, &options)) {
        dead_letters_answer_busy(call);
    }
}

// clang-format off
static const ApiRoute ROUTES[] = {
    {"GET", "/v1/dead-letters/{}", SCOPE_DEAD_READ, get_letter, NULL, false},
    {"DELETE", "/v1/dead-letters/{}", SCOPE_DEAD_RESEND, delete_letter, NULL, false},
    {"POST", "/v1/dead-letters/{}/resend", SCOPE_DEAD_RESEND, post_resend, NULL, false},
    {"POST", "/v1/notifications/{}/resend", SCOPE_DEAD_RESEND, post_notification_resend, NULL, false},
};
// clang-format on

void dead_letters_one_add(Api *api, DeadLettersApi *letters)
{
    api_add(api, ROUTES, sizeof ROUTES / sizeof ROUTES[0], letters);
}
