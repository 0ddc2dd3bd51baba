// SPDX-License-Identifier: Apache-2.0
#include "services/ingest/http_api.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "services/ingest/request_json.h"

#define PATH STR("/v1/notifications")
#define SCOPE STR("POST /v1/notifications")

enum { IDEMPOTENCY_KEY_MAX = 128, NTF_ID_LEN = 4 + ULID_LEN, TRACEPARENT_LEN = 55 };

// One request on its way to the commit; lives in the request's arena.
typedef struct Call {
    HttpApi *api;
    HttpRequest *http;
    char tenant[TENANT_SIZE];
    RequestList list;
    Submission submission;
} Call;

// ---- answers ----

static void refuse(HttpApi *api, Refusal reason)
{
    metric_add(api->metrics->refused[reason], 1);
}

static void answer_unavailable(HttpApi *api, HttpRequest *http, const char *why)
{
    refuse(api, REFUSED_UNAVAILABLE);
    http_response_header(http, "Retry-After", STR("2"));
    http_problem(http, 503, "unavailable", "Not accepted just now", NULL, "%s", why);
}

static void answer_problem(HttpApi *api, HttpRequest *http, const Problem *problem)
{
    refuse(api, problem->status == 400 ? REFUSED_MALFORMED : REFUSED_INVALID);
    http_problem(
        http, problem->status, problem->slug, problem->title,
        problem->field[0] == '\0' ? NULL : problem->field, "%s", problem->detail);
}

static void add_location(HttpRequest *http, Str answer)
{
    Str before = STR("{\"id\":\"");
    if (str_starts(answer, before)) {
        Str id = str_slice(answer, before.len, before.len + NTF_ID_LEN);
        char *path = arena_printf(http->arena, "/v1/notifications/" STR_FMT, STR_ARG(id));
        http_response_header(http, "Location", str_from(path));
    }
}

static void answer_accepted(Call *call, const AcceptResult *result)
{
    if (result->verdict == ACCEPT_REPLAYED) {
        metric_add(call->api->metrics->replayed, 1);
        http_response_header(call->http, "Idempotent-Replayed", STR("true"));
    }
    add_location(call->http, result->answer);
    http_respond(call->http, result->status, "application/json", result->answer);
}

static void answer_failure(Call *call, const Error *err)
{
    if (err->kind == ERROR_TRANSIENT || err->kind == ERROR_CANCELLED) {
        answer_unavailable(call->api, call->http, err->text);
        return;
    }
    LOG(LOG_ERROR, "request could not be accepted", log_text("tenant", call->tenant),
        log_error(err));
    refuse(call->api, REFUSED_UNAVAILABLE);
    http_problem(
        call->http, 500, "internal", "Not accepted", NULL, "a fault of the service; it was logged");
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
        refuse(call->api, REFUSED_CONFLICT);
        http_problem(
            call->http, 409, "idempotency-conflict", "The idempotency key was used before",
            "Idempotency-Key", "the same key came with another body within 24 hours");
        break;
    case ACCEPT_UNAVAILABLE:
        answer_failure(call, &result->error);
        break;
    }
}

// ---- checks ----

static bool check_route(HttpRequest *http)
{
    if (!str_eq(http->path, PATH)) {
        http_problem(
            http, 404, "not-found", "There is nothing here", NULL, "the path is /v1/notifications");
        return false;
    }
    if (!str_eq(http->method, STR("POST"))) {
        http_response_header(http, "Allow", STR("POST"));
        http_problem(http, 405, "method-not-allowed", "Only POST is taken here", NULL, "use POST");
        return false;
    }
    return true;
}

static bool check_caller(Call *call)
{
    HttpRequest *http = call->http;
    Str authorization = http_header(http, "Authorization");
    if (!auth_check(call->api->auth, authorization, http->received_at_us, call->tenant)) {
        refuse(call->api, REFUSED_UNAUTHORIZED);
        http_response_header(http, "WWW-Authenticate", STR("Bearer"));
        http_problem(
            http, 401, "unauthorized", "No valid API key", NULL,
            "send 'Authorization: Bearer stn_<key id>.<secret>' with an active key");
        return false;
    }
    if (catalog_is_suspended(call->api->catalog, str_from(call->tenant))) {
        refuse(call->api, REFUSED_SUSPENDED);
        http_problem(
            http, 403, "tenant-suspended", "The tenant is suspended", NULL,
            "tenant '%s' may not send", call->tenant);
        return false;
    }
    return true;
}

static bool check_idempotency_key(Call *call, Str *ret_key)
{
    Str key = http_header(call->http, "Idempotency-Key");
    bool good = key.len <= IDEMPOTENCY_KEY_MAX;
    for (size_t i = 0; good && i < key.len; i++) {
        good = key.ptr[i] >= 0x20 && key.ptr[i] <= 0x7e;
    }
    if (!good) {
        Problem problem = {
            .status = 422,
            .slug = "invalid-field",
            .title = "A field is not valid",
            .field = "Idempotency-Key",
            .detail = "at most 128 printable ASCII characters",
        };
        answer_problem(call->api, call->http, &problem);
    }
    *ret_key = key;
    return good;
}

static bool check_body(Call *call)
{
    HttpRequest *http = call->http;
    Problem problem = {0};
    if (!request_json_parse(http->body, http->received_at_us, http->arena, &call->list, &problem)) {
        answer_problem(call->api, http, &problem);
        return false;
    }
    for (size_t i = 0; i < call->list.count; i++) {
        FieldError err = {.field = ""};
        Request *request = &call->list.items[i];
        if (!catalog_freeze(
                call->api->catalog, str_from(call->tenant), request, http->arena, &err)) {
            request_json_problem(&call->list, i, &err, &problem);
            answer_problem(call->api, http, &problem);
            return false;
        }
    }
    return true;
}

// W3C trace context, version 00: 55 characters of hex and dashes. Anything else is not passed on.
static Str read_traceparent(const HttpRequest *http)
{
    Str text = http_header(http, "traceparent");
    if (text.len != TRACEPARENT_LEN) {
        return STR_EMPTY;
    }
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool dash = i == 2 || i == 35 || i == 52;
        bool hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
        if (dash ? c != '-' : !hex) {
            return STR_EMPTY;
        }
    }
    return text;
}

static void submit(Call *call, Str key)
{
    HttpRequest *http = call->http;
    call->submission = (Submission){
        .tenant = str_from(call->tenant),
        .scope = SCOPE,
        .key = key,
        .traceparent = read_traceparent(http),
        .requests = call->list.items,
        .count = call->list.count,
        .single = call->list.single,
        .bytes = http->body.len,
        .done = on_accept_done,
        .ctx = call,
    };
    if (key.len > 0) {
        sha256(http->body, call->submission.body_hash);
    }
    Error err = {0};
    if (!accept_submit(call->api->accept, &call->submission, http->arena, &err)) {
        answer_unavailable(call->api, http, err.text);
    }
}

void http_api_handle(void *ctx, HttpRequest *request)
{
    HttpApi *api = ctx;
    if (!check_route(request)) {
        return;
    }
    const char *unready = api->unready(api->unready_ctx);
    if (unready != NULL) {
        answer_unavailable(api, request, unready);
        return;
    }
    Call *call = arena_zalloc(request->arena, sizeof *call);
    call->api = api;
    call->http = request;
    Str key = STR_EMPTY;
    if (check_caller(call) && check_idempotency_key(call, &key) && check_body(call)) {
        submit(call, key);
    }
}
