// SPDX-License-Identifier: Apache-2.0
// What the drain is doing: one enumeration, one writer, one table of moves (drain_state.c;
// drain_state_test.c walks all pairs).
//
//              .--> reading -------.
//              |--> scanning ------|
//   new --> idle <-----------------+--> answering for the last time
//    |      |  |--> adopting ------|         |
//    |      |  '--> putting aside -'         v
//    '------+---------------------------> ending --> stopped
//
// reading: a claim behind the cursor is in the air. scanning: a claim that is a piece of the scan
// through the whole table. adopting: a look for a claim whose time is over. putting aside: a row
// that cannot be claimed. Each is one answer of Postgres that is awaited, so there is one at most.
// answering for the last time: a stop was asked for, that answer is still to come. ending: what is
// under way ends.
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

// false: refused, nothing changed (common/base/states/states.h). `relay` is whose drain it is.
bool drain_state_move(DrainState *state, DrainState next, const char *relay);
