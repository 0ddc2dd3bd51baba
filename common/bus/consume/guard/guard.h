// SPDX-License-Identifier: Apache-2.0
// The guard against poison messages (poison.h), one for all workers of a process. A first delivery
// does not pass here and costs nothing. What comes again is handed over in groups, one in hand at a
// time, after a mark that names the group is stored in the stream IN_HAND; the mark is lifted when
// the group is settled, or when the loop has turned for a while: a process that turns is alive and
// waits, and being killed while it waits says nothing about its input. A process that dies, or
// whose loop stands, leaves its mark.
//
// A third delivery may be one that kills late, after the loop has turned. Such a group is
// watched then: its mark stands while the loop computes and is away while it sleeps, nine tenths of
// the time at least, until the group is settled or some seconds have passed. What kills does so
// while the loop computes; what waits for Postgres or a vendor waits while it sleeps.
//
// Law: no answer to a delivery of a group leaves before a mark without it is stored, so no mark of
// a process that lived stands where its inputs come again. While a group with evidence is in hand
// nothing else is handed over, and what one more death could prove is watched only when nothing
// else is in hand. Without marks (no NATS, no stream) work goes on, unguarded.
#pragma once

#include "common/bus/jetstream/bus_internal.h"

typedef struct Guard Guard;
struct Worker;

void guard_join(Bus *bus, struct Worker *worker); // sets worker->guard; the bus owns it
// on_left: nothing of the guard asks for the bus's endpoints any more on this worker's account.
void guard_leave(Guard *guard, struct Worker *worker, void (*on_left)(void *ctx), void *ctx);
void guard_free(Guard *guard); // by the bus, when nothing is published any more; NULL-safe

void guard_turn(Guard *guard);
void guard_tick(Guard *guard);
bool guard_is_still(const Guard *guard); // it has nothing that a few ticks change
// The loop has nothing more to do and would sleep: of a watched group it sleeps here, without the
// mark. true: once more round before that.
bool guard_rest(Guard *guard);

bool guard_is_closed(const Guard *guard); // nothing but the group may be handed over
void guard_note_hand_over(Guard *guard);  // ... of first deliveries
// The worker's mark, standing or on its way: it may not stop before.
bool guard_holds(const Guard *guard, const struct Worker *worker);
// This process had it and lives.
void guard_acquit(Guard *guard, const BusMessage *message);
