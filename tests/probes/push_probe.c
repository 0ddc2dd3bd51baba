// SPDX-License-Identifier: Apache-2.0
// links: stentor_vendor stentor_http2 PkgConfig::jansson
// Pushes by hand: common/vendor builds and reads, push/bearers keeps what authorizes, common/http2
// carries. One push a line on standard input, an object of JSON, and a line with its result:
//   {"vendor": "apns", "account": {"secret", "id", "settings": {..}}, "nid": N, "attempt": 1,
//    "to": T, "title": S, "body": S, "data": "{..}", "urgent": true}
// Arguments: ca=FILE. It signs, or asks for, a bearer when there is none that is of use.
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/http2/http2_client.h"
#include "common/vendor/apns/apns.h"
#include "common/vendor/fcm/fcm.h"
#include "common/vendor/push/bearers.h"
#include "common/vendor/webpush/webpush.h"

enum { LINE_SIZE = 65536, SETTINGS_MAX = 8, HEADERS_SEEN = 64, TRIES = 2 };

static const VendorApi *const vendors[] = {&fcm_api, &apns_api, &webpush_api};

typedef struct Probe {
    uv_loop_t loop;
    Http2Client *client;
    Bearers *bearers;
    int64_t made; // bearers
} Probe;

// One call, waited for.
typedef struct Waited {
    Arena *arena;
    Buf body;
    VendorAnswer answer;
    HttpAnswer got;
    bool done;
} Waited;

static bool on_piece(void *ctx, Http2Call *call, const void *bytes, size_t len)
{
    (void)call;
    return buf_append(&((Waited *)ctx)->body, bytes, len);
}

static void on_done(void *ctx, Http2Call *call, const HttpAnswer *got)
{
    Waited *waited = ctx;
    HttpAnswerHeader found[HEADERS_SEEN];
    size_t count = http2_call_headers(call, found, HEADERS_SEEN);
    VendorPair *headers = arena_array(waited->arena, count + 1, sizeof *headers);
    for (size_t i = 0; i < count; i++) {
        headers[i].name = arena_str(waited->arena, found[i].name);
        headers[i].value = arena_str(waited->arena, found[i].value);
    }
    waited->got = *got;
    waited->answer = (VendorAnswer){
        .status = got->status,
        .headers = headers,
        .header_count = count,
        .body = arena_str(waited->arena, buf_view(&waited->body)),
        .read_us = clock_now_us()};
    waited->done = true;
}

// false: there is no answer; the error says why.
static bool call(
    Probe *probe, const VendorRequest *request, Arena *arena, VendorAnswer *ret, Error *err)
{
    Waited waited = {.arena = arena};
    Http2CallOptions options = {
        .method = request->method,
        .url = arena_cstr(arena, request->url),
        .body = request->body.ptr,
        .body_len = request->body.len,
        .on_piece = on_piece,
        .on_done = on_done,
        .ctx = &waited};
    for (size_t i = 0; i < request->header_count; i++) {
        options.headers[i].name = arena_cstr(arena, request->headers[i].name);
        options.headers[i].value = arena_cstr(arena, request->headers[i].value);
    }
    buf_init(&waited.body, VENDOR_ANSWER_MAX);
    http2_call(probe->client, &options);
    while (!waited.done) {
        uv_run(&probe->loop, UV_RUN_ONCE);
    }
    buf_done(&waited.body);
    *ret = waited.answer;
    *err = waited.got.err;
    return waited.got.outcome == HTTP_ANSWERED;
}

static bool make_bearer(
    Probe *probe, const VendorApi *api, const VendorAccount *account, Str audience, Arena *arena,
    VendorBearer *ret, Error *err)
{
    VendorRequest request;
    VendorAnswer answer;
    int64_t now_us = clock_now_us();
    if (api->sign != NULL) {
        return api->sign(account, audience, now_us, arena, ret, err);
    }
    return api->grant(account, now_us, arena, &request, err) &&
           call(probe, &request, arena, &answer, err) && api->granted(&answer, arena, ret, err);
}

static bool authorize(
    Probe *probe, const VendorApi *api, const VendorMail *push, VendorAccount *account,
    Arena *arena, Str *ret_key, Error *err)
{
    bool due = false;
    VendorBearer bearer;
    Str audience = api->audience != NULL ? api->audience(push, arena) : STR_EMPTY;
    Str key = str_from(arena_printf(arena, "%s " STR_FMT, api->name, STR_ARG(audience)));
    account->bearer =
        arena_str(arena, bearers_get(probe->bearers, key, account->secret, clock_now_us(), &due));
    *ret_key = key;
    if (!due) {
        return true;
    }
    if (!make_bearer(probe, api, account, audience, arena, &bearer, err)) {
        bearers_failed(probe->bearers, key, account->secret, clock_now_us());
        return false;
    }
    probe->made++;
    account->bearer = bearer.text;
    return bearers_put(probe->bearers, key, account->secret, &bearer, clock_now_us());
}

static void report(Probe *probe, const SendResult *result, const Error *err)
{
    json_t *line = json_pack(
        "{s:i, s:i, s:s%, s:s%, s:s%, s:I, s:s, s:s}", "state", (int)result->state, "reply",
        (int)result->reply, "code", result->code.ptr, result->code.len, "text", result->text.ptr,
        result->text.len, "message_id", result->vendor_message_id.ptr,
        result->vendor_message_id.len, "bearers", (json_int_t)probe->made, "kind",
        error_kind_name(err->kind), "error", err->text);
    char *text = json_dumps(line, JSON_COMPACT);
    printf("%s\n", text);
    fflush(stdout);
    free(text);
    json_decref(line);
}

// A bearer that was refused is dropped, and the same push sent once more.
static void send_push(
    Probe *probe, const VendorApi *api, const VendorMail *push, VendorAccount *account,
    Arena *arena)
{
    SendResult result = {
        .state = SEND_UNSENT, .code = STR_EMPTY, .text = STR_EMPTY, .vendor_message_id = STR_EMPTY};
    Error err = {0};
    bool again = true;
    for (int try = 0; again && try < TRIES; try++) {
        Str key;
        VendorRequest request;
        VendorAnswer answer;
        again = false;
        if (authorize(probe, api, push, account, arena, &key, &err) &&
            api->build(push, account, clock_now_us(), arena, &request, &err) &&
            call(probe, &request, arena, &answer, &err)) {
            api->read(&answer, arena, &result);
            again = api->stale != NULL && api->stale(&answer, arena);
            if (again) {
                bearers_drop(probe->bearers, key, account->bearer);
            }
        }
    }
    report(probe, &result, &err);
}

static Str text_of(const json_t *object, const char *name)
{
    return str_from(json_string_value(json_object_get(object, name)));
}

static void obey(Probe *probe, const json_t *command)
{
    Arena *arena = arena_new(0);
    json_t *given = json_object_get(command, "account"), *value;
    VendorPair settings[SETTINGS_MAX];
    VendorAccount account = {
        .name = STR("probe"),
        .id = text_of(given, "id"),
        .secret = text_of(given, "secret"),
        .settings = settings};
    const char *name;
    json_object_foreach(json_object_get(given, "settings"), name, value)
    {
        settings[account.setting_count++] =
            (VendorPair){str_from(name), str_from(json_string_value(value))};
    }
    VendorMail push = {
        .notification_id = text_of(command, "nid"),
        .attempt = (int32_t)json_integer_value(json_object_get(command, "attempt")),
        .to = {.address = text_of(command, "to")},
        .subject = text_of(command, "title"),
        .text = text_of(command, "body"),
        .data = text_of(command, "data"),
        .urgent = json_is_true(json_object_get(command, "urgent"))};
    for (size_t i = 0; i < sizeof vendors / sizeof *vendors; i++) {
        if (str_eq(text_of(command, "vendor"), str_from(vendors[i]->name))) {
            send_push(probe, vendors[i], &push, &account, arena);
        }
    }
    arena_free(arena);
}

int main(int argc, char **argv)
{
    HttpGuard guard = {.allow_loopback = true};
    Http2ClientOptions options = {.guard = &guard};
    Probe probe = {.bearers = bearers_new()};
    Error err = {0};
    options.ca_file = argc > 1 && strncmp(argv[1], "ca=", 3) == 0 ? argv[1] + 3 : NULL;
    signal(SIGPIPE, SIG_IGN); // as in a service
    uv_loop_init(&probe.loop);
    probe.client = http2_client_new(&probe.loop, &options, &err);
    if (probe.client == NULL) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    char *line = xmalloc(LINE_SIZE);
    while (fgets(line, LINE_SIZE, stdin) != NULL) {
        json_t *command = json_loads(line, 0, NULL);
        if (command != NULL) {
            obey(&probe, command);
        }
        json_decref(command);
    }
    free(line);
    bearers_free(probe.bearers);
    http2_client_free(probe.client, NULL, NULL);
    uv_run(&probe.loop, UV_RUN_DEFAULT);
    return uv_loop_close(&probe.loop) == 0 ? 0 : 1;
}
