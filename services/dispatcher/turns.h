// SPDX-License-Identifier: Apache-2.0
// Turns: which tenant's deliveries continue while a lane's vendor is slow. A lane is slow when it
// has been full for a while and has more than one tenant. Then each tenant may hold only a part of
// the lane's claims; its further deliveries are held here unclaimed, and those of other tenants
// pass them. Held deliveries continue as their tenant's claims end. When too many are held, the
// lane waits like a full one; but further mails of a tenant whose mails are slow are postponed (a
// deferred attempt), so that the rest of the lane can still come in. A tenant that sends alone, and
// a busy machine, postpone none.
#pragma once

#include "services/dispatcher/dispatcher_internal.h"

typedef enum Turn {
    TURN_NOW,
    TURN_HELD, // turns_next() gives it later
    TURN_POSTPONED,
} Turn;

void turns_open(DispatcherLane *lane);
void turns_close(DispatcherLane *lane); // the lane must be empty
// Of an admitted job; once.
Turn turns_take(DispatcherLane *lane, Job *job);
// Its claim ended, or it was not claimed at all.
void turns_left(Job *job);
// Held jobs whose turn has come, at most `max`, all in one arena, as is the array. 0: none.
size_t turns_next(DispatcherLane *lane, size_t max, Job ***ret);
size_t turns_room(const DispatcherLane *lane);           // how many claims the lane may have
bool turns_due(const DispatcherLane *lane);              // turns_next() has some
void turns_update(DispatcherLane *lane, int64_t now_us); // a few times a second
// A held job, to be returned at a stop; NULL: none.
Job *turns_give_up(DispatcherLane *lane);
