// SPDX-License-Identifier: Apache-2.0
#include "services/ingest/intake/notifications_api.h"

#include <string.h>

#include "common/api/api_json.h"
#include "common/api/guards/idempotency.h"
#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/base/log.h"
#include "common/bus/jetstream/trace.h"
#include "common/request/required.h"
#include "services/ingest/accept/stored_answer.h"
#include "services/ingest/intake/attachments.h"
#include "services/ingest/intake/request_json.h"

#define SCOPE STR("POST /v1/notifications")

enum {
    TRACEPARENT_LEN = 55,
    NTF_ID_LEN = 4 + ULID_LEN,
    WARNINGS_MAX = 8,
};

// One request on its way to the commit; lives in the request's arena.
typedef struct Call {
    NotificationsApi *api;
    ApiCall *base;
    RequestList list;
    Submission submission;
    Problem problem; // what is wrong with it by now; status 0: nothing
    const char *warnings[WARNINGS_MAX];
    size_t warning_count;
} Call;

// ---- answers ----

// Where the notification of {"id":"ntf_...",...} can be read: gateway's route.
static void show_location(const Call *call, Str answer)
{
    Str head = STR("{\"id\":\"");
    Str id = str_slice(answer, head.len, head.len + NTF_ID_LEN);
    if (call->submission.single && str_starts(answer, head) && id_parse(id, "ntf_", NULL)) {
        const char *place =
            arena_printf(call->base->http->arena, "/v1/notifications/" STR_FMT, STR_ARG(id));
        http_response_header(call->base->http, "Location", str_from(place));
    }
}

static void answer_accepted(Call *call, const AcceptResult *result)
{
    if (result->verdict == ACCEPT_REPLAYED) {
        metric_add(call->api->metrics->replayed, 1);
        http_response_header(call->base->http, "Idempotent-Replayed", STR("true"));
    }
    show_location(call, result->answer);
    json_t *answer = call->warning_count == 0
                         ? NULL
                         : json_loadb(result->answer.ptr, result->answer.len, 0, NULL);
    if (answer == NULL) {
        http_respond(call->base->http, result->status, "application/json", result->answer);
        return;
    }
    json_t *warnings = json_array(); // of now: the stored answer, which a repeat gets, has none
    for (size_t i = 0; i < call->warning_count; i++) {
        (void)json_array_append_new(warnings, json_string(call->warnings[i]));
    }
    (void)json_object_set_new(answer, "warnings", warnings);
    api_answer_json(call->base, result->status, answer);
}

static void on_accept_done(void *ctx, const AcceptResult *result)
{
    Call *call = ctx;
    switch (result->verdict) {
    case ACCEPT_STORED:
    case ACCEPT_REPLAYED:
        answer_accepted(call, result);
        break;
    case ACCEPT_OTHER_BODY:
        metric_add(call->base->metrics->refused[REFUSED_CONFLICT], 1);
        http_problem(
            call->base->http, 409, "idempotency-conflict",
            "The idempotency key belongs to another request", "Idempotency-Key",
            "this key came with another body within 24 hours; choose a new key");
        break;
    case ACCEPT_UNAVAILABLE:
        api_answer_failure(call->base, &result->error);
        break;
    }
}

// ---- checks ----

static bool check_idempotency_key(Call *call)
{
    HttpRequest *http = call->base->http;
    Str *key = &call->submission.key;
    bool good = idempotency_key_parse(http_header(http, "Idempotency-Key"), http->arena, key);
    if (!good) {
        Problem problem = {
            .status = 422,
            .slug = "invalid-field",
            .title = "A field is not valid",
            .field = "Idempotency-Key",
            .detail = "at most 128 printable ASCII characters",
        };
        api_answer_problem(call->base, &problem);
    }
    return good;
}

// Without this the renderer would fail the notification after the caller has its 202.
static void check_variables(const Call *call, size_t index, Problem *problem)
{
    Arena *arena = call->base->http->arena;
    const RequestList *list = &call->list;
    const Request *request = &list->items[index];
    const char *at = catalog_required(call->api->catalog, str_from(call->base->tenant), request);
    const char *path = NULL;
    while (!problem_is_full(problem) &&
           (path = required_missing(&at, list->variables[index], NULL)) != NULL) {
        FieldError err;
        (void)required_error(&err, path, request, arena);
        request_json_problem(list, index, &err, arena, problem);
    }
    VariableRules *rules = catalog_rules(call->api->catalog, str_from(call->base->tenant), request);
    const char *field = NULL, *text = NULL;
    for (size_t i = 0;
         !problem_is_full(problem) &&
         !variable_rules_hold(rules, list->variables[index], &i, arena, &field, &text);) {
        FieldError err;
        (void)field_error(&err, field, "%s", text);
        request_json_problem(list, index, &err, arena, problem);
    }
}

// Each deprecated version once.
static void note_deprecated(Call *call, const Request *request)
{
    Arena *arena = call->base->http->arena;
    const char *text =
        catalog_deprecated(call->api->catalog, str_from(call->base->tenant), request, arena);
    for (size_t i = 0; text != NULL && i < call->warning_count; i++) {
        text = strcmp(call->warnings[i], text) == 0 ? NULL : text;
    }
    if (text != NULL && call->warning_count < WARNINGS_MAX) {
        call->warnings[call->warning_count++] = text;
    }
}

static void check_attachments(const Call *call, size_t index, Problem *problem)
{
    FieldError err = {.field = ""};
    const AttachmentRules rules = {
        .master = call->api->master,
        .tenant = str_from(call->base->tenant),
        .bytes_max = call->api->attachments_max,
        .now_us = call->base->http->received_at_us,
    };
    if (!attachments_read(&rules, &call->list.items[index], call->base->http->arena, &err)) {
        request_json_problem(&call->list, index, &err, call->base->http->arena, problem);
    }
}

static void check_templates(Call *call, Problem *problem)
{
    Arena *arena = call->base->http->arena;
    for (size_t i = 0; i < call->list.count && !problem_is_full(problem); i++) {
        FieldError err = {.field = ""};
        if (catalog_freeze(
                call->api->catalog, str_from(call->base->tenant), &call->list.items[i], arena,
                &err)) {
            check_variables(call, i, problem);
            check_attachments(call, i, problem);
            note_deprecated(call, &call->list.items[i]);
        } else {
            request_json_problem(&call->list, i, &err, arena, problem);
        }
    }
}

static void hash_body(Call *call, json_t *root)
{
    sha256(api_json_canonical(root, call->base->http->arena), call->submission.body_hash);
}

static bool check_body(Call *call)
{
    HttpRequest *http = call->base->http;
    const RequestRules rules = {
        .now_us = http->received_at_us,
        .delivered =
            routes_channels(call->api->routes, str_from(call->base->tenant), call->api->delivered),
        .routes = call->api->routes,
        .tenant = str_from(call->base->tenant),
    };
    if (request_json_parse(http->body, &rules, http->arena, &call->list, &call->problem)) {
        check_templates(call, &call->problem);
        if (call->problem.status == 0 && call->submission.key.len > 0) {
            hash_body(call, call->list.root);
        }
        request_list_done(&call->list);
    }
    return call->problem.status == 0;
}

// ---- a repeat that would be refused by now ----

static void on_stored_answer(void *ctx, const AcceptResult *result)
{
    Call *call = ctx;
    if (result->verdict == ACCEPT_OTHER_BODY) {
        api_answer_problem(call->base, &call->problem);
        return;
    }
    call->warning_count = 0; // nothing is made of it
    on_accept_done(call, result);
}

// Its first request may have been accepted: that one's answer stands.
static void refuse(Call *call)
{
    HttpRequest *http = call->base->http;
    json_error_t ignored;
    json_t *root = call->problem.status == 422 && call->submission.key.len > 0
                       ? api_json_load(http->body, JSON_REJECT_DUPLICATES, &ignored)
                       : NULL; // once more: request_json_parse frees its own
    if (root == NULL) {
        api_answer_problem(call->base, &call->problem);
        return;
    }
    hash_body(call, root);
    call->submission.single = json_is_object(root);
    json_decref(root);
    call->submission.done = on_stored_answer;
    call->submission.ctx = call;
    stored_answer_find(call->api->pool, &call->submission);
}

// W3C trace context, version 00. Anything else is not passed on.
static Str read_traceparent(const HttpRequest *http)
{
    Str text = http_header(http, "traceparent");
    return text.len == TRACEPARENT_LEN && trace_is_parent(text) ? text : STR_EMPTY;
}

static void submit(Call *call)
{
    HttpRequest *http = call->base->http;
    Submission *submission = &call->submission;
    submission->traceparent = read_traceparent(http);
    submission->requests = call->list.items;
    submission->count = call->list.count;
    submission->single = call->list.single;
    submission->bytes = http->body.len;
    submission->done = on_accept_done;
    submission->ctx = call;
    Error err = {0};
    if (!accept_submit(call->api->accept, submission, http->arena, &err)) {
        api_answer_unavailable(call->base, err.text);
    }
}

static void post_notifications(ApiCall *api_call)
{
    Call *call = arena_zalloc(api_call->http->arena, sizeof *call);
    call->api = api_call->ctx;
    call->base = api_call;
    call->submission.tenant = str_from(api_call->tenant);
    call->submission.scope = SCOPE;
    if (!check_idempotency_key(call)) {
        return;
    }
    if (check_body(call)) {
        submit(call);
    } else {
        refuse(call);
    }
}

static const ApiRoute ROUTES[] = {
    {"POST", "/v1/notifications", SCOPE_NOTIFICATIONS_SEND, post_notifications, NULL, false},
};

void notifications_api_add(Api *api, NotificationsApi *notifications)
{
    api_add(api, ROUTES, sizeof ROUTES / sizeof ROUTES[0], notifications);
}
