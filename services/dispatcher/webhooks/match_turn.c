// SPDX-License-Identifier: Apache-2.0
// Whose turn it is to match. Of all processes the one with the lock does, so that the events of a
// notification are seen in their order. What a process before had in hand and did not ack comes
// again, but only after the consumer's ack wait, and behind newer ones: so the next one waits for
// as long before it reads, when there is such. One that lost the lock and lives gives back what
// waits in it: it would renew it for ever.
//
// Without a subscription of any tenant nothing is read: the consumer is closed (match_place.h).
#include "common/base/clock.h"
#include "common/base/log.h"
#include "services/dispatcher/webhooks/hooks_internal.h"
#include "services/dispatcher/webhooks/match_place.h"

enum {
    INFO_TIMEOUT_MS = 5000,
    INFO_AGAIN_MS = 500,
    CLOSE_AFTER_S = 10, // without a subscription
    LOOK_EVERY_S = 60,  // where the consumer stands: who lost the lock may move it a last time
    EARLIER_S = 1,      // the server compares in nanoseconds, match_wants in microseconds
};

#define MATCH_LOCK "stentor.webhook.match"

static void ask(Hooks *hooks);

static void on_ask_timer(uv_timer_t *timer)
{
    ask(timer->data);
}

static void ask_again(Hooks *hooks)
{
    (void)uv_timer_start(&hooks->turn_timer, on_ask_timer, INFO_AGAIN_MS, 0);
}

static void start_reading(Hooks *hooks)
{
    hooks->turn = MATCH_READS;
    worker_pause(hooks->matcher, false);
}

static void on_wait_timer(uv_timer_t *timer)
{
    start_reading(timer->data);
}

// Since when a status is for one of them.
static int64_t wanted_since(const Hooks *hooks)
{
    return subscriptions_since(hooks->subscriptions) - EARLIER_S * INT64_C(1000000);
}

static bool has_turn(const Hooks *hooks)
{
    return !hooks->stopping && db_lock_held(hooks->match_lock);
}

static void on_moved(void *ctx, const Error *err)
{
    Hooks *hooks = ctx;
    hooks->asking = false;
    if (!has_turn(hooks)) {
        return;
    }
    hooks->moved = true;
    if (err == NULL) {
        ask(hooks);
        return;
    }
    LOG(LOG_WARN, "the consumer of STATUS could not be moved, trying again", log_error(err));
    if (subscriptions_count(hooks->subscriptions) == 0) {
        start_reading(hooks); // costs something, and no more
        hooks->wanted_us = clock_mono_us() + LOOK_EVERY_S * INT64_C(1000000);
    } else {
        hooks->moved = false;
        ask_again(hooks);
    }
}

static void move_place(Hooks *hooks, const MatchPlace *place, bool wanted)
{
    hooks->asking = true;
    if (wanted) {
        LOG_PLAIN(LOG_INFO, "statuses are read, for a tenant has a subscription");
        match_place_open(hooks->parts.bus, place, wanted_since(hooks), on_moved, hooks);
    } else {
        LOG_PLAIN(LOG_INFO, "no status is read, for no tenant has a subscription");
        match_place_close(hooks->parts.bus, place, on_moved, hooks);
    }
}

// A server on which moving it changes nothing is read from as it is, until the next look.
static void take_turn(Hooks *hooks, const MatchPlace *place)
{
    bool wanted = subscriptions_count(hooks->subscriptions) > 0;
    bool moved = hooks->moved;
    hooks->moved = false;
    if (!moved && (place->missing || wanted == place->closed)) {
        move_place(hooks, place, wanted);
    } else if (!wanted && place->closed) {
        hooks->turn = MATCH_RESTS;
        worker_yield(hooks->matcher);
    } else if (hooks->turn == MATCH_READS || place->unacked == 0) {
        start_reading(hooks);
    } else {
        LOG(LOG_INFO, "statuses that a process before had in hand are waited for",
            log_int("count", place->unacked), log_int("milliseconds", place->wait_ms));
        (void)uv_timer_start(&hooks->turn_timer, on_wait_timer, (uint64_t)place->wait_ms + 1, 0);
    }
}

static void on_info(void *ctx, Str reply, const Error *err)
{
    Hooks *hooks = ctx;
    MatchPlace place;
    hooks->asking = false;
    bool known = match_place_read(reply, err, &place);
    if (has_turn(hooks)) {
        if (known) {
            take_turn(hooks, &place);
        } else {
            ask_again(hooks);
        }
    }
    match_place_done(&place);
}

static void ask(Hooks *hooks)
{
    if (hooks->asking || hooks->stopping) {
        return;
    }
    hooks->asking = true;
    hooks->looked_us = clock_mono_us();
    bus_request(
        hooks->parts.bus, "$JS.API.CONSUMER.INFO.STATUS.webhook", STR_EMPTY, INFO_TIMEOUT_MS,
        on_info, hooks);
}

static void on_lock_changed(void *ctx, bool held)
{
    Hooks *hooks = ctx;
    worker_yield(hooks->matcher);
    hooks->turn = MATCH_WAITS;
    (void)uv_timer_stop(&hooks->turn_timer);
    if (held) {
        ask(hooks);
    }
}

void match_begin(Hooks *hooks)
{
    match_place_spare(hooks->parts.bus);
    worker_yield(hooks->matcher);
    worker_start(hooks->matcher);
    hooks->match_lock = db_lock_new(
        hooks->parts.loop, hooks->parts.database_url, MATCH_LOCK, on_lock_changed, hooks);
}

void match_tick(Hooks *hooks)
{
    int64_t now_us = clock_mono_us();
    bool wanted = subscriptions_count(hooks->subscriptions) > 0;
    if (wanted || hooks->turn != MATCH_READS) {
        hooks->wanted_us = now_us;
    }
    bool unwanted = now_us - hooks->wanted_us > CLOSE_AFTER_S * INT64_C(1000000);
    bool old = now_us - hooks->looked_us > LOOK_EVERY_S * INT64_C(1000000);
    bool other = unwanted || (wanted && hooks->turn == MATCH_RESTS);
    if (hooks->turn != MATCH_WAITS && (old || other)) {
        ask(hooks);
    }
}
