// SPDX-License-Identifier: Apache-2.0
#include "services/cli/vendors/vendor_call.h"

#include <stdlib.h>
#include <uv.h>

#include "common/base/clock.h"
#include "common/http/client/http_client.h"

enum { CALL_MS = 10000 };

struct VendorCaller {
    const Cli *cli;
    uv_loop_t loop;
    HttpGuard guard;
    HttpClient *client;
    VendorAnswer answer;
    Buf body;
    Error err;
};

static bool on_piece(void *ctx, HttpCall *call, const void *bytes, size_t len)
{
    (void)call;
    VendorCaller *caller = ctx;
    return buf_append(&caller->body, bytes, len);
}

static void on_answered(void *ctx, HttpCall *call, const HttpAnswer *answer)
{
    (void)call;
    VendorCaller *caller = ctx;
    caller->answer.status = answer->status;
    caller->answer.cut = answer->stopped;
    if (answer->status == 0) {
        caller->err = answer->err;
    }
}

static void on_freed(void *ctx)
{
    (void)ctx;
}

VendorCaller *vendor_caller_new(const Cli *cli, Error *err)
{
    VendorCaller *caller = xcalloc(1, sizeof *caller);
    const char *ca_file = cli->settings.vendor_ca_file;
    caller->cli = cli;
    (void)uv_loop_init(&caller->loop);
    buf_init(&caller->body, VENDOR_ANSWER_MAX);
    if (!guard_allow(&caller->guard, str_from(cli->settings.vendor_addresses), err)) {
        (void)error_wrap(err, "STENTOR_VENDOR_ADDRESSES");
        vendor_caller_free(caller);
        return NULL;
    }
    HttpClientOptions options = {
        .calls = 1, .ca_file = ca_file[0] != '\0' ? ca_file : NULL, .guard = &caller->guard};
    caller->client = http_client_new(&caller->loop, &options, err);
    if (caller->client == NULL) {
        vendor_caller_free(caller);
        return NULL;
    }
    return caller;
}

void vendor_caller_free(VendorCaller *caller)
{
    if (caller == NULL) {
        return;
    }
    if (caller->client != NULL) {
        http_client_free(caller->client, on_freed, caller);
        (void)uv_run(&caller->loop, UV_RUN_DEFAULT);
    }
    (void)uv_loop_close(&caller->loop);
    buf_done(&caller->body);
    free(caller);
}

bool vendor_call(VendorCaller *caller, const VendorRequest *request, VendorAnswer *ret, Error *err)
{
    Arena *arena = caller->cli->arena;
    HttpCallOptions call = {
        .method = request->method,
        .url = arena_cstr(arena, request->url),
        .body = request->body.ptr,
        .body_len = request->body.len,
        .whole_ms = CALL_MS,
        .on_piece = on_piece,
        .on_done = on_answered,
        .ctx = caller};
    for (size_t i = 0; i < request->header_count; i++) {
        call.headers[i] = (HttpCallHeader){
            arena_cstr(arena, request->headers[i].name),
            arena_cstr(arena, request->headers[i].value)};
    }
    buf_clear(&caller->body);
    caller->answer = (VendorAnswer){.status = 0};
    error_clear(&caller->err);
    (void)http_call(caller->client, &call);
    while (caller->answer.status == 0 && caller->err.kind == ERROR_NONE) {
        (void)uv_run(&caller->loop, UV_RUN_ONCE);
    }
    if (caller->err.kind != ERROR_NONE) {
        *err = caller->err;
        return false;
    }
    caller->answer.body = buf_view(&caller->body);
    caller->answer.read_us = clock_now_us();
    *ret = caller->answer;
    return true;
}
