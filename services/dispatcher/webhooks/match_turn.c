// SPDX-License-Identifier: Apache-2.0
// Whose turn it is to match. Of all processes the one with the lock does, so that the events of a
// notification are seen in their order. What a process before had in hand and did not ack comes
// again, but only after the consumer's ack wait, and behind newer ones: so the next one waits for
// as long before it reads, when there is such. One that lost the lock and lives gives back what
// waits in it: it would renew it for ever.
#include <jansson.h>

#include "common/base/log.h"
#include "services/dispatcher/webhooks/hooks_internal.h"

enum { INFO_TIMEOUT_MS = 5000, INFO_AGAIN_MS = 500 };

#define MATCH_LOCK "stentor.webhook.match"

static void ask(Hooks *hooks);

static void on_ask_timer(uv_timer_t *timer)
{
    ask(timer->data);
}

static void on_wait_timer(uv_timer_t *timer)
{
    const Hooks *hooks = timer->data;
    worker_pause(hooks->matcher, false);
}

// false: no answer that says it.
static bool read_info(Str reply, int64_t *ret_unacked, int64_t *ret_wait_ms)
{
    json_t *root = json_loadb(reply.ptr, reply.len, 0, NULL);
    const json_t *unacked = json_object_get(root, "num_ack_pending");
    const json_t *wait_ns = json_object_get(json_object_get(root, "config"), "ack_wait");
    bool known = json_is_integer(unacked) && json_is_integer(wait_ns);
    *ret_unacked = json_integer_value(unacked);
    *ret_wait_ms = json_integer_value(wait_ns) / 1000000;
    json_decref(root);
    return known;
}

static void on_info(void *ctx, Str reply, const Error *err)
{
    Hooks *hooks = ctx;
    int64_t unacked = 0, wait_ms = 0;
    hooks->asking = false;
    if (hooks->stopping || !db_lock_held(hooks->match_lock)) {
        return;
    }
    if (err != NULL || !read_info(reply, &unacked, &wait_ms)) {
        (void)uv_timer_start(&hooks->turn_timer, on_ask_timer, INFO_AGAIN_MS, 0);
    } else if (unacked == 0) {
        worker_pause(hooks->matcher, false);
    } else {
        LOG(LOG_INFO, "statuses that a process before had in hand are waited for",
            log_int("count", unacked), log_int("milliseconds", wait_ms));
        (void)uv_timer_start(&hooks->turn_timer, on_wait_timer, (uint64_t)wait_ms + 1, 0);
    }
}

static void ask(Hooks *hooks)
{
    if (hooks->asking || hooks->stopping) {
        return;
    }
    hooks->asking = true;
    bus_request(
        hooks->parts.bus, "$JS.API.CONSUMER.INFO.STATUS.webhook", STR_EMPTY, INFO_TIMEOUT_MS,
        on_info, hooks);
}

static void on_lock_changed(void *ctx, bool held)
{
    Hooks *hooks = ctx;
    worker_yield(hooks->matcher);
    (void)uv_timer_stop(&hooks->turn_timer);
    if (held) {
        ask(hooks);
    }
}

void match_begin(Hooks *hooks)
{
    worker_yield(hooks->matcher);
    worker_start(hooks->matcher);
    hooks->match_lock = db_lock_new(
        hooks->parts.loop, hooks->parts.database_url, MATCH_LOCK, on_lock_changed, hooks);
}
