// SPDX-License-Identifier: Apache-2.0
// States: the moves that a state machine allows, as one table, and what happens to the others.
//
// A machine has one enumeration, one table and one `x_move()`, which is the only writer of its
// state and asks states_step() first. The header of the machine draws its diagram, and its test
// compares the table with that diagram, pair by pair.
//
// Law: a move that the table does not have changes nothing. In a debug build it ends the process;
// in a release build it is logged as an error, and x_move() tells its caller, which then takes the
// safe way: close the connection, let the message be delivered again.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/base/str.h"

enum { STATES_MAX = 32 };

// In a row of a table: [X_IDLE] = STATE_BIT(X_ASKING) | STATE_BIT(X_CLOSED),
#define STATE_BIT(state) (UINT32_C(1) << (state))

typedef struct States {
    const char *machine;      // "smtp client"
    const char *const *names; // by state
    const uint32_t *allowed;  // by state: a bit for each state that may follow
    unsigned count;           // at most STATES_MAX
} States;

// Pure.
static inline bool states_allow(const States *states, unsigned from, unsigned to)
{
    return from < states->count && to < states->count && (states->allowed[from] >> to & 1u) != 0;
}

// Whether the move is allowed. Logs old -> new at debug level, a refusal at error level. `who` is
// the one of many that moves: a stream, a notification.
bool states_step(const States *states, unsigned from, unsigned to, Str who);

#ifdef STENTOR_STRICT_STATES
// For tests: a refused move is survived, as in a release build.
void states_forgive(bool forgive);
#endif
