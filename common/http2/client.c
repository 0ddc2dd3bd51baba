// SPDX-License-Identifier: Apache-2.0
// The client as a whole: its options, its clock, the ends of its calls, its own end.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/http2/http2_internal.h"

enum {
    STREAMS = 100,
    CONNECTIONS = 4,
    CONNECTS_PER_S = 10,
    CONNECT_MS = 3000,
    SECURE_MS = 5000,
    PING_MS = 30000,
    PONG_MS = 10000,
    KEPT_IDLE_S = 300,
    LIFE_S = 3600,
    TICK_MS = 50,
    IDLE_TICK_MS = 500,
    CONNECTS_COUNT_MS = 1000,
};

// ---- turns ----

void http2_origin_touch(Http2Origin *origin)
{
    Http2Client *client = origin->client;
    if (!origin->touched) {
        origin->touched = true;
        origin->next_touched = client->touched;
        client->touched = origin;
    }
}

static void deliver(Http2Client *client)
{
    while (client->ended_first != NULL) {
        Http2Call *call = client->ended_first;
        client->ended_first = call->next;
        client->ended_last = client->ended_first == NULL ? NULL : client->ended_last;
        if (call->origin != NULL) {
            http2_origin_touch(call->origin);
        }
        call->on_done(call->ctx, call, &call->answer);
        http2_call_free(call);
    }
}

static void start_touched(Http2Client *client)
{
    while (client->touched != NULL) {
        Http2Origin *origin = client->touched;
        client->touched = origin->next_touched;
        origin->touched = false;
        http2_origin_start(origin);
    }
}

static void tear_down(Http2Client *client);

void http2_client_settle(Http2Client *client)
{
    while (client->ended_first != NULL || client->touched != NULL) {
        deliver(client);
        start_touched(client);
    }
    if (client->closing && client->open == NULL) {
        tear_down(client);
    }
}

static void on_soon(uv_timer_t *timer)
{
    http2_client_settle(timer->data);
}

// ---- time ----

static void end_late_calls(Http2Client *client, uint64_t now)
{
    for (Http2Call *call = client->open; call != NULL;) {
        Http2Call *older = call->older;
        if (now >= call->ends_at_ms) {
            const char *why = "it took longer than it may";
            http2_call_fail(call, HTTP_FAILURE_TIMEOUT, ERROR_TRANSIENT, why);
        }
        call = older;
    }
}

// Kept for as long as its last connections count.
static bool is_gone(const Http2Origin *origin)
{
    uint64_t now = uv_now(origin->client->loop);
    return !origin->touched && http2_origin_is_unused(origin) &&
           now - origin->connects_at_ms > CONNECTS_COUNT_MS;
}

// One that nothing uses any more; its name in *ret.
static bool find_unused(const Http2Client *client, Str *ret)
{
    void *value;
    for (size_t i = 0; map_next(client->origins, &i, ret, &value);) {
        if (is_gone(value)) {
            return true;
        }
    }
    return false;
}

static void on_tick(uv_timer_t *timer)
{
    Http2Client *client = timer->data;
    uint64_t now = uv_now(client->loop);
    Str name;
    void *value;
    end_late_calls(client, now);
    for (size_t i = 0; map_next(client->origins, &i, &name, &value);) {
        Http2Origin *origin = value;
        Http2Connection *next;
        for (Http2Connection *at = origin->connections; at != NULL; at = next) {
            next = at->next;
            http2_connection_tick(at, now);
        }
        if (origin->waiting > 0) {
            http2_origin_touch(origin);
        }
    }
    http2_client_settle(client);
    if (client->tearing_down) {
        return;
    }
    while (find_unused(client, &name)) {
        map_remove(client->origins, name);
    }
    if (client->open != NULL || map_count(client->origins) > 0) {
        uv_timer_start(timer, on_tick, client->open != NULL ? TICK_MS : IDLE_TICK_MS, 0);
    }
}

void http2_client_soon(Http2Client *client)
{
    uint64_t due = uv_timer_get_due_in(&client->tick);
    if (!uv_is_active((uv_handle_t *)&client->soon)) {
        uv_timer_start(&client->soon, on_soon, 0, 0);
    }
    if (!uv_is_active((uv_handle_t *)&client->tick) || due > TICK_MS) {
        uv_timer_start(&client->tick, on_tick, TICK_MS, 0);
    }
}

// ---- life ----

static int64_t or_default(int64_t value, int64_t value_if_0)
{
    return value > 0 ? value : value_if_0;
}

static void take_options(Http2Client *client, const Http2ClientOptions *options)
{
    client->guard = *options->guard;
    client->agent = xstrdup(options->agent != NULL ? options->agent : "stentor");
    client->dns_servers = options->dns_servers != NULL ? xstrdup(options->dns_servers) : NULL;
    client->streams = (uint32_t)or_default(options->streams, STREAMS);
    client->connections = (size_t)or_default(options->connections, CONNECTIONS);
    client->connects_per_s = (double)or_default(options->connects_per_s, CONNECTS_PER_S);
    client->connect_ms = (uint64_t)or_default(options->connect_ms, CONNECT_MS);
    client->secure_ms = (uint64_t)or_default(options->secure_ms, SECURE_MS);
    client->ping_ms = (uint64_t)or_default(options->ping_ms, PING_MS);
    client->pong_ms = (uint64_t)or_default(options->pong_ms, PONG_MS);
    client->kept_idle_ms = (uint64_t)or_default(options->kept_idle_s, KEPT_IDLE_S) * 1000;
    client->life_ms = (uint64_t)or_default(options->life_s, LIFE_S) * 1000;
}

Http2Client *http2_client_new(uv_loop_t *loop, const Http2ClientOptions *options, Error *err)
{
    const char *ca_file = options->ca_file != NULL ? options->ca_file : "";
    TlsContext *tls = tls_context_new(ca_file, true, "h2", err);
    assert(options->guard != NULL);
    if (tls == NULL) {
        return NULL;
    }
    Http2Client *client = xcalloc(1, sizeof *client);
    client->loop = loop;
    client->tls = tls;
    take_options(client, options);
    client->origins = map_new(http2_origin_free);
    uv_timer_init(loop, &client->tick);
    uv_timer_init(loop, &client->soon);
    client->tick.data = client->soon.data = client;
    client->handles = 2;
    return client;
}

static void on_timer_closed(uv_handle_t *handle)
{
    http2_client_closed(handle->data);
}

static void on_dns_freed(void *ctx)
{
    http2_client_closed(ctx);
}

// All calls have ended: what the loop has closes.
static void tear_down(Http2Client *client)
{
    Str name;
    void *origin;
    if (client->tearing_down) {
        return;
    }
    client->tearing_down = true;
    for (size_t i = 0; map_next(client->origins, &i, &name, &origin);) {
        http2_origin_cancel(origin);
    }
    if (client->dns != NULL) {
        dns_free(client->dns, on_dns_freed, client);
    }
    uv_close((uv_handle_t *)&client->tick, on_timer_closed);
    uv_close((uv_handle_t *)&client->soon, on_timer_closed);
}

void http2_client_free(Http2Client *client, void (*on_freed)(void *ctx), void *ctx)
{
    client->closing = true;
    client->on_freed = on_freed;
    client->freed_ctx = ctx;
    while (client->open != NULL) {
        http2_call_fail(client->open, HTTP_FAILURE_OTHER, ERROR_CANCELLED, "cancelled");
    }
    http2_client_soon(client);
}

void http2_client_closed(Http2Client *client)
{
    assert(client->handles > 0);
    if (--client->handles > 0) {
        return;
    }
    void (*on_freed)(void *ctx) = client->on_freed;
    void *ctx = client->freed_ctx;
    map_free(client->origins);
    tls_context_free(client->tls);
    free(client->dns_servers);
    free(client->agent);
    free(client);
    if (on_freed != NULL) {
        on_freed(ctx);
    }
}
