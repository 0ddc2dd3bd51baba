// SPDX-License-Identifier: Apache-2.0
// Whose turn it is, and what is kept for the next call. The queue is ours: each easy handle that
// libcurl has and cannot start costs it CPU, the more the longer it waits. Each origin has its own,
// so that one that is slow holds up no other. A handle is kept with its timer and used again: a new
// one costs more than the options that differ.
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"
#include "common/http/client/client_internal.h"

enum { PACE_MS = 20 };

// ---- handles ----

static void on_call_closed(uv_handle_t *handle)
{
    HttpCall *call = handle->data;
    HttpClient *client = call->client;
    free(call);
    client_handle_closed(client);
}

static void free_call(HttpCall *call)
{
    curl_easy_cleanup(call->easy);
    curl_slist_free_all(call->pin);
    uv_close((uv_handle_t *)&call->timer, on_call_closed);
}

HttpCall *pool_take(HttpClient *client)
{
    HttpCall *call = client->spare;
    if (call != NULL) {
        client->spare = call->next;
        client->spare_count--;
        return call;
    }
    call = xcalloc(1, sizeof *call);
    call->client = client;
    call->easy = curl_easy_init();
    assert(call->easy != NULL);
    uv_timer_init(client->loop, &call->timer);
    call->timer.data = call;
    client->handles++;
    call_prepare_once(call);
    return call;
}

void pool_give(HttpCall *call)
{
    HttpClient *client = call->client;
    uv_timer_stop(&call->timer);
    if (client->closing || client->spare_count >= SPARE_MAX) {
        free_call(call);
        return;
    }
    call->next = client->spare;
    client->spare = call;
    client->spare_count++;
}

void pool_free(HttpClient *client)
{
    while (client->spare != NULL) {
        HttpCall *call = client->spare;
        client->spare = call->next;
        free_call(call);
    }
    client->spare_count = 0;
}

// ---- origins ----

Origin *origin_of(HttpClient *client, const GuardedUrl *url)
{
    char name[GUARD_HOST_MAX + 16];
    int len = snprintf(
        name, sizeof name, "%c%s:%u", url->https ? 's' : 'p', url->host, (unsigned)url->port);
    Origin *origin = map_get(client->origins, str_of(name, (size_t)len));
    if (origin == NULL) {
        origin = xcalloc(1, sizeof *origin);
        origin->client = client;
        origin->name = xstrdup(name);
        origin->connects = client->connects_per_s;
        origin->connects_at_ms = uv_now(client->loop);
        map_put(client->origins, str_from(name), origin);
    }
    return origin;
}

void origin_let_go(Origin *origin)
{
    bool used = origin->waiting + origin->resolving + origin->running + origin->open > 0;
    if (origin->name == NULL || used || origin->listed) {
        return;
    }
    Map *origins = origin->client->origins;
    map_remove(origins, str_from(origin->name)); // and frees it
}

void origin_free(void *value)
{
    Origin *origin = value;
    free(origin->name);
    free(origin);
}

static bool may_connect(Origin *origin)
{
    double per_s = origin->client->connects_per_s;
    uint64_t now = uv_now(origin->client->loop);
    double room = origin->connects + per_s * (double)(now - origin->connects_at_ms) / 1000.0;
    origin->connects = room < per_s ? room : per_s;
    origin->connects_at_ms = now;
    if (origin->connects < 1.0) {
        return false;
    }
    origin->connects -= 1.0;
    return true;
}

// ---- the queue ----

static void push_origin(Origin *origin)
{
    HttpClient *client = origin->client;
    if (origin->listed) {
        return;
    }
    origin->next = NULL;
    *(client->last == NULL ? &client->first : &client->last->next) = origin;
    client->last = origin;
    client->listed++;
    origin->listed = true;
}

static Origin *pop_origin(HttpClient *client)
{
    Origin *origin = client->first;
    client->first = origin->next;
    client->last = client->first == NULL ? NULL : client->last;
    client->listed--;
    origin->listed = false;
    return origin;
}

void queue_push(HttpCall *call)
{
    Origin *origin = call->origin;
    int lane = call->lane;
    call->step = CALL_WAITING;
    call->next = NULL;
    *(origin->last[lane] == NULL ? &origin->first[lane] : &origin->last[lane]->next) = call;
    origin->last[lane] = call;
    origin->waiting++;
    push_origin(origin);
    call_watch(call);
}

void queue_remove(HttpCall *call)
{
    Origin *origin = call->origin;
    int lane = call->lane;
    HttpCall *before = NULL;
    for (HttpCall *at = origin->first[lane]; at != NULL; before = at, at = at->next) {
        if (at == call) {
            *(before == NULL ? &origin->first[lane] : &before->next) = at->next;
            origin->last[lane] = origin->last[lane] == at ? before : origin->last[lane];
            origin->waiting--;
            return;
        }
    }
}

static HttpCall *first_of(const Origin *origin)
{
    for (int lane = 0; lane < HTTP_CALL_LANES; lane++) {
        if (origin->first[lane] != NULL) {
            return origin->first[lane];
        }
    }
    return NULL;
}

static void start(HttpCall *call)
{
    HttpClient *client = call->client;
    queue_remove(call);
    call->step = CALL_RUNNING;
    call->begun = true;
    call->origin->running++;
    client->running++;
    call->last_at_ms = uv_now(client->loop);
    call_watch(call);
    curl_multi_add_handle(client->multi, call->easy); // arms the timer: it begins on the loop
}

static void on_pace(uv_timer_t *timer)
{
    client_start_waiting(timer->data);
}

// true: one of its calls has begun.
static bool start_one(Origin *origin)
{
    HttpClient *client = origin->client;
    HttpCall *call = first_of(origin);
    if (call == NULL || (origin->name != NULL && origin->running >= client->origin_calls)) {
        return false;
    }
    bool has_idle = origin->open > origin->running;
    if (origin->name != NULL && !has_idle && !may_connect(origin)) {
        if (!uv_is_active((uv_handle_t *)&client->pace)) {
            uv_timer_start(&client->pace, on_pace, PACE_MS, 0);
        }
        return false;
    }
    start(call);
    return true;
}

// In turns: each origin one call, then each its next; one that may start none keeps its place.
void client_start_waiting(HttpClient *client)
{
    if (client->inside || client->closing) {
        return;
    }
    unsigned stuck = 0;
    while (stuck < client->listed && client->running < client->calls_max) {
        Origin *origin = pop_origin(client);
        if (origin->waiting == 0) {
            origin_let_go(origin);
            continue;
        }
        stuck = start_one(origin) ? 0 : stuck + 1;
        push_origin(origin);
    }
}
