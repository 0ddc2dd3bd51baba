// SPDX-License-Identifier: Apache-2.0
// A rebuild under way, whichever projection it is of: waiting, and what the log must hold.
#pragma once

#include "services/cli/rebuild/rebuild_log.h"

// Until `reached`, or the projection's failure. timeout_ms 0: as long as it takes.
bool rebuild_wait(Rebuild *rebuild, bool (*reached)(Rebuild *rebuild), int timeout_ms, Error *err);
// For what is stopped, closed or freed: rebuild_on_ended is its callback, the wait the context.
SessionWait rebuild_wait_for(Rebuild *rebuild);
void rebuild_on_ended(void *ctx);
void rebuild_wait_ended(SessionWait *wait);
void rebuild_open_pool(Rebuild *rebuild);
void rebuild_close_pool(Rebuild *rebuild);

// After reading: nothing has left the log before it was read.
bool rebuild_check_whole(const Rebuild *rebuild, Error *err);
// How far the streams hold now the events that are folded live: `until` and `folded`.
bool rebuild_set_until(Rebuild *rebuild, RebuildPositions *live, Error *err);
void rebuild_show(void *ctx, const char *line); // a difference; ctx is the rebuild

typedef struct RebuildFreeze {
    bool (*freeze)(void *ctx, RebuildPositions *ret, Error *err);
    bool (*thaw)(void *ctx, Error *err);
    void *ctx;
    bool (*caught_up)(Rebuild *rebuild);
    bool (*reached_until)(Rebuild *rebuild);
} RebuildFreeze;

// Holds the live tables and folds what was folded into them until then, so that no reader sees a
// row go back; the service waits meanwhile. false: they are not held.
bool rebuild_freeze_level(Rebuild *rebuild, const RebuildFreeze *level, Error *err);

// The projections. Each takes what it needs and leaves the live tables as they were, or rebuilt.
bool rebuild_history(Rebuild *rebuild, Error *err);
bool rebuild_people(Rebuild *rebuild, PeopleKind kind, Error *err);
bool rebuild_saga(Rebuild *rebuild, Error *err);
bool rebuild_find(Rebuild *rebuild, Error *err);
