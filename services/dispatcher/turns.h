// SPDX-License-Identifier: Apache-2.0
// Turns: whose deliveries of a lane go on while its vendor is slow. A lane that has been full for a
// while, and of more than one tenant, is slow: then of each tenant only a part of its claims counts
// and goes on, what is beyond is held here unclaimed, and the others' go past. Held deliveries go
// on as their tenant's claims end. When too many are held, the lane waits, as a full one; but of a
// tenant whose mails take long further ones are postponed: a deferred attempt, so that the rest of
// the lane can still come in. A tenant that sends alone, and a machine that is busy, postpone none.
#pragma once

#include "services/dispatcher/dispatcher_internal.h"

typedef enum Turn {
    TURN_NOW,
    TURN_HELD, // turns_next() gives it later
    TURN_POSTPONED,
} Turn;

void turns_open(DispatcherLane *lane);
void turns_close(DispatcherLane *lane); // nothing is in the lane
// Of an admitted job; once.
Turn turns_take(DispatcherLane *lane, Job *job);
// Its claim ended, or it was not claimed at all.
void turns_left(Job *job);
// Held jobs whose turn has come, at most `max`, all of one arena; the array is in it. 0: none.
size_t turns_next(DispatcherLane *lane, size_t max, Job ***ret);
bool turns_due(const DispatcherLane *lane);            // turns_next() has some
void turns_look(DispatcherLane *lane, int64_t now_us); // a few times a second
// One that is held, for a stop; NULL: none.
Job *turns_give_up(DispatcherLane *lane);
