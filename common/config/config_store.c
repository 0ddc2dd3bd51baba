// SPDX-License-Identifier: Apache-2.0
// Killed between the publish and its ack: the writer's own record (an unacked input, a caller who
// has no answer) stores it again; the server drops it by its id, or names it as what stands there.
#include "common/config/config_store.h"

#include <stdlib.h>

#include "common/bus/events/suppression_event.h"

enum { TRIES_MAX = 64, ASK_AGAIN_MS = 10, PATIENCE_MS = 5000 };

// In the caller's arena.
typedef struct Put {
    Bus *bus;
    ConfigStore what;
    Arena *arena;
    int tries;
} Put;

// Waits for the mirror; on the heap, for its timer is closed later.
typedef struct Wait {
    uv_timer_t timer;
    Put *put;
    uint64_t there;
    uint64_t until_ms;
    bool in_time;
} Wait;

static void publish(Put *put);
static void decide(Put *put, uint64_t there);

static void end(const Put *put, const Error *err, uint64_t sequence, bool duplicate)
{
    put->what.done(put->what.ctx, err, sequence, duplicate);
}

static void give_up(const Put *put, const char *why)
{
    Error err;
    error_set(&err, ERROR_TRANSIENT, "'%s' %s", put->what.out.subject, why);
    end(put, &err, 0, false);
}

// ---- waiting ----

static void on_timer_closed(uv_handle_t *handle)
{
    Wait *wait = handle->data;
    Put *put = wait->put;
    uint64_t there = wait->there;
    bool in_time = wait->in_time;
    free(wait);
    if (in_time) {
        decide(put, there);
    } else {
        give_up(
            put,
            "was changed by another writer, and this process could not read the new entry in time");
    }
}

static void on_timer_again(uv_timer_t *timer)
{
    Wait *wait = timer->data;
    const ConfigStore *what = &wait->put->what;
    wait->in_time = uv_now(timer->loop) < wait->until_ms;
    // The verdict itself is asked for once the timer is gone.
    if (!wait->in_time || what->decide(what->ctx, wait->there) != CONFIG_WAIT) {
        uv_close((uv_handle_t *)timer, on_timer_closed);
    }
}

static void wait_for_mirror(Put *put, uint64_t there)
{
    Wait *wait = xcalloc(1, sizeof *wait);
    uv_loop_t *loop = bus_loop(put->bus);
    wait->put = put;
    wait->there = there;
    wait->until_ms = uv_now(loop) + PATIENCE_MS;
    (void)uv_timer_init(loop, &wait->timer);
    wait->timer.data = wait;
    (void)uv_timer_start(&wait->timer, on_timer_again, ASK_AGAIN_MS, ASK_AGAIN_MS);
}

// ---- deciding ----

static void decide(Put *put, uint64_t there)
{
    ConfigVerdict verdict =
        put->what.decide == NULL ? CONFIG_PUT : put->what.decide(put->what.ctx, there);
    switch (verdict) {
    case CONFIG_PUT:
        put->what.replaces = there;
        publish(put);
        break;
    case CONFIG_WAIT:
        wait_for_mirror(put, there);
        break;
    case CONFIG_LEAVE:
        end(put, NULL, there, true);
        break;
    }
}

static void on_bus_stored(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    Put *put = ctx;
    if (err == NULL || err->kind != ERROR_CONFLICT) {
        end(put, err, sequence, duplicate);
    } else if (++put->tries == TRIES_MAX) {
        give_up(put, "keeps being changed by other writers; try again");
    } else {
        decide(put, sequence);
    }
}

static void publish(Put *put)
{
    BusOut out = put->what.out;
    const BusHeader expected = bus_replaces(put->what.replaces, put->arena);
    out.headers = &expected;
    out.header_count = 1;
    bus_publish(put->bus, &out, on_bus_stored, put);
}

void config_store(Bus *bus, const ConfigStore *store, Arena *arena)
{
    Put *put = arena_zalloc(arena, sizeof *put);
    *put = (Put){.bus = bus, .what = *store, .arena = arena};
    publish(put);
}

// ---- suppressions ----

typedef struct Fact {
    const Suppressions *known;
    const Stentor__V1__Suppression *entry;
    BusAcked done;
    void *ctx;
} Fact;

uint64_t suppression_known_sequence(
    const Suppressions *known, const Stentor__V1__Suppression *entry)
{
    return suppressions_sequence(
        known, str_from(entry->tenant), (Channel)entry->channel, (Category)entry->category,
        entry->address_hash.data);
}

bool suppression_is_known(
    const Suppressions *known, const Stentor__V1__Suppression *entry, uint64_t there)
{
    return suppression_known_sequence(known, entry) >= there;
}

static ConfigVerdict decide_fact(void *ctx, uint64_t there)
{
    const Fact *fact = ctx;
    const Stentor__V1__Suppression *entry = fact->entry;
    if (!suppression_is_known(fact->known, entry, there)) {
        return CONFIG_WAIT;
    }
    return suppressions_wants(
               fact->known, str_from(entry->tenant), (Channel)entry->channel,
               (Category)entry->category, entry->address_hash.data,
               (SuppressionReason)entry->reason, entry->created_at_us, suppression_cause(entry))
               ? CONFIG_PUT
               : CONFIG_LEAVE;
}

static void on_fact_stored(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    const Fact *fact = ctx;
    fact->done(fact->ctx, err, sequence, duplicate);
}

void suppression_store(
    Bus *bus, const Suppressions *known, const Stentor__V1__Suppression *entry, Str traceparent,
    Arena *arena, BusAcked done, void *ctx)
{
    Fact *fact = arena_zalloc(arena, sizeof *fact);
    *fact = (Fact){known, entry, done, ctx};
    ConfigStore store = {
        .replaces = suppression_known_sequence(known, entry),
        .decide = decide_fact,
        .done = on_fact_stored,
        .ctx = fact,
    };
    Error err = {0};
    if (!suppression_event(entry, arena, &store.out, &err)) {
        done(ctx, &err, 0, false);
        return;
    }
    store.out.traceparent = traceparent;
    config_store(bus, &store, arena);
}
