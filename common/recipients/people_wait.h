// SPDX-License-Identifier: Apache-2.0
// PeopleWait: until a projection (of PEOPLE, of FEED), in whichever process it runs, has what a
// writer has just stored. It asks for the projection's position while something waits, and else for
// nothing.
#pragma once

#include "common/db/db.h"

enum { PEOPLE_PATIENCE_MS = 2000 };

typedef struct PeopleWait PeopleWait;

PeopleWait *people_wait_new(DbPool *pool); // borrowed
// For another projection: `position` has one column, the sequence that its tables hold.
PeopleWait *people_wait_new_for(DbPool *pool, const DbStatement *position);
// Calls `done` once, never from inside the call: seen when the tables hold the event of PEOPLE with
// that sequence, not seen after PEOPLE_PATIENCE_MS. `ctx` must live until then.
typedef void (*PeopleSeen)(void *ctx, bool seen);
void people_wait(PeopleWait *wait, uint64_t sequence, PeopleSeen done, void *ctx);
// What waits is answered as not seen; then it frees itself, and on_freed comes from the loop.
void people_wait_free(PeopleWait *wait, void (*on_freed)(void *ctx), void *ctx);
