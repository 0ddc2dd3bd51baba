// SPDX-License-Identifier: Apache-2.0
// The drain's states: one enumeration, one writer, one table of moves (drain_state.c;
// drain_state_test.c walks all pairs).
//
//              .--> reading -------------.
//              |--> scanning ------------|
//   new --> idle <-----------------------+--> awaiting the last answer
//    |      |  |--> adopting ------------|         |
//    |      |  '--> putting a row aside -'         v
//    '------+---------------------------------> ending --> stopped
//
// reading: a claim behind the cursor is in flight. scanning: a claim that is a piece of the scan
// through the whole table. adopting: a search for an expired claim. putting a row aside: a row
// cannot be claimed. Each of these awaits one answer of Postgres. awaiting the last answer: the
// same after a stop was requested. ending: batches in progress end.
#pragma once

#include <stdbool.h>

typedef enum DrainState {
    DRAIN_NEW,
    DRAIN_IDLE,
    DRAIN_READING,
    DRAIN_SCANNING,
    DRAIN_ADOPTING,
    DRAIN_PUTTING_ASIDE,
    DRAIN_LAST_ANSWER,
    DRAIN_ENDING,
    DRAIN_STOPPED,
    DRAIN_STATE_COUNT,
} DrainState;

// false: not allowed, nothing changed (common/base/states/states.h). `relay`: whose drain it is.
bool drain_state_move(DrainState *state, DrainState next, const char *relay);
