// SPDX-License-Identifier: Apache-2.0
#include "common/bus/consume/ack_guard.h"

#include <stdlib.h>

#include "common/base/arena.h"
#include "common/base/log.h"
#include "common/bus/jetstream/get_message.h"

static void send_ack(AckGuard *g, const char *subject)
{
    bus_send(g->bus, subject, NULL, STR("+ACK"));
    g->bus->stats.acked++;
}

static void release_held(AckGuard *g)
{
    for (size_t i = 0; i < g->held_count; i++) {
        if (g->held[i].breaks >= g->same_since) {
            send_ack(g, g->held[i].subject);
        } else {
            g->bus->stats.withheld++;
        }
        free(g->held[i].subject);
    }
    g->held_count = 0;
}

// ---- is it the same store? ----

typedef enum Finding { STORE_UNKNOWN, STORE_SAME, STORE_OTHER } Finding;

static Finding read_finding(const AckGuard *g, Str reply)
{
    Arena *arena = arena_new(0);
    BusMessage message;
    bool found = false;
    bool known = get_message_reply(reply, g->stream, arena, &message, &found, NULL);
    bool same = known && found && message.stored_at_us == g->top.stored_at_us;
    arena_free(arena);
    return same ? STORE_SAME : known ? STORE_OTHER : STORE_UNKNOWN;
}

// From `breaks` on the store is known again; what is held from before goes out when it is the same.
static void conclude(AckGuard *g, unsigned breaks, bool same)
{
    if (!same) {
        LOG(LOG_WARN,
            "acks withheld: after the lost connection the stream may not be the one that was read; "
            "its messages are redelivered",
            log_text("stream", g->stream), log_int("acks", (int64_t)g->held_count));
        g->same_since = breaks;
        g->top = (Top){0};
    }
    g->known_until = breaks;
    if (g->fresh.breaks == breaks && g->fresh.sequence > g->top.sequence) {
        g->top = g->fresh;
    }
    if (g->fresh.breaks <= breaks) {
        g->fresh = (Top){0};
        g->mixed = false;
    }
    if (breaks == link_breaks(g->bus->link)) {
        release_held(g);
    }
}

static void on_message_read(void *ctx, Str reply, const Error *err)
{
    AckGuard *g = ctx;
    g->asking = false;
    Finding finding = err != NULL ? STORE_UNKNOWN : read_finding(g, reply);
    if (finding != STORE_UNKNOWN) { // else it is asked again at the next tick
        conclude(g, g->asked_at, finding == STORE_SAME);
    }
}

void ack_guard_tick(AckGuard *g)
{
    unsigned breaks = link_breaks(g->bus->link);
    if (g->known_until == breaks || g->asking || !bus_connected(g->bus)) {
        return;
    }
    // Read between two breaks and never checked: one request cannot answer for both.
    bool unseen = g->mixed || (g->fresh.sequence > 0 && g->fresh.breaks != breaks);
    if (unseen || g->top.sequence == 0) {
        conclude(g, breaks, !unseen);
    } else {
        MessageQuery query = {.stream = g->stream, .sequence = g->top.sequence};
        g->asking = true;
        g->asked_at = link_breaks(g->bus->link);
        get_message(g->bus, &query, on_message_read, g);
    }
}

// ---- deliveries and their acks ----

static void raise_top(Top *top, const AckSubject *ack)
{
    if (ack->stream_sequence > top->sequence) {
        *top = (Top){ack->stream_sequence, ack->stored_at_us, ack->breaks};
    }
}

void ack_guard_arrived(AckGuard *g, const AckSubject *ack)
{
    if (ack->breaks == g->known_until) {
        raise_top(&g->top, ack);
        return;
    }
    if (g->fresh.sequence > 0 && g->fresh.breaks != ack->breaks) {
        g->mixed = true;
        g->fresh = (Top){0};
    }
    raise_top(&g->fresh, ack);
}

void ack_guard_ack(AckGuard *g, const char *ack_subject, unsigned breaks)
{
    if (g->known_until != link_breaks(g->bus->link)) {
        if (g->held_count == g->held_cap) {
            g->held_cap = g->held_cap == 0 ? 64 : 2 * g->held_cap;
            g->held = xrealloc(g->held, g->held_cap * sizeof *g->held);
        }
        g->held[g->held_count++] = (HeldAck){xstrdup(ack_subject), breaks};
        ack_guard_tick(g);
    } else if (breaks >= g->same_since) {
        send_ack(g, ack_subject);
    } else {
        g->bus->stats.withheld++;
    }
}

void ack_guard_init(AckGuard *g, Bus *bus, const char *stream)
{
    unsigned breaks = link_breaks(bus->link);
    *g = (AckGuard){.bus = bus, .stream = stream, .same_since = breaks, .known_until = breaks};
}

void ack_guard_done(AckGuard *g)
{
    bus_forget_requests(g->bus, g);
    for (size_t i = 0; i < g->held_count; i++) {
        free(g->held[i].subject);
    }
    free(g->held);
}
