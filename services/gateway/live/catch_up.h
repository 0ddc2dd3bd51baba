// SPDX-License-Identifier: Apache-2.0
// Clients that come back: what STATUS holds behind the last event that each has. Clients of one
// subject share a reader; a few read at once, the others wait, since a restart brings them all back
// together, and no faster than they take it. What is heard meanwhile is kept and comes after it, so
// that none is lost and none comes twice.
#pragma once

#include "services/gateway/live/live_event.h"

enum {
    CATCH_UP_EVENTS_MAX = 1000, // that one client gets
    CATCH_UP_AGE_S = 600,
    CATCH_UP_READERS_MAX = 4,
    CATCH_UP_PATIENCE_MS = 10000,
    CATCH_UP_BACKLOG_MAX = 32 * 1024, // bytes that a client has not taken: it is waited for
};

typedef struct CatchUps CatchUps;

// One client, in the place of its owner's; until on_caught_up or catch_up_leave.
typedef struct CatchUpClient {
    void *owner;
    const LiveFilter *filter;
    uint64_t position;          // the last event that it has
    size_t count;               // that it got
    struct CatchUp *group;      // NULL: it does not catch up
    struct CatchUpClient *next; // of the group
} CatchUpClient;

typedef struct CatchUpHandlers {
    void (*on_event)(void *owner, const LiveEvent *event);
    size_t (*backlog)(void *owner); // bytes that it has not taken
    // No event comes any more. whole false: too many, too old or not there any more.
    void (*on_caught_up)(void *owner, bool whole);
} CatchUpHandlers;

CatchUps *catch_ups_new(Bus *bus, uv_loop_t *loop, const CatchUpHandlers *handlers);
// Of a tenant's client: everything behind client->position.
void catch_up_join(CatchUps *ups, CatchUpClient *client, Str tenant, uint64_t now_ms);
void catch_up_leave(CatchUps *ups, CatchUpClient *client);
// What was heard while clients catch up.
void catch_ups_heard(CatchUps *ups, const LiveEvent *event);
bool catch_ups_want(const CatchUps *ups, const LivePlace *place);
void catch_ups_tick(CatchUps *ups, uint64_t now_ms);
// Its clients are left alone; on_stopped when no reader is left, in the call or later.
void catch_ups_stop(CatchUps *ups, void (*on_stopped)(void *ctx), void *ctx);
void catch_ups_free(CatchUps *ups); // after on_stopped
