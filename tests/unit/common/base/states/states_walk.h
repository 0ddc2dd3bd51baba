// SPDX-License-Identifier: Apache-2.0
// A walk over all pairs of a machine's states: each is allowed or refused as the machine's diagram
// says, which the test writes down once more.
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/states/states.h"

typedef struct StateRow {
    const char *from;
    const char *to; // "ready, closing"; "" of an end
} StateRow;

typedef struct StateWalk {
    const StateRow *rows; // by state
    unsigned count;
    // The machine's x_move(); *state is what it leaves behind.
    bool (*move)(unsigned *state, unsigned next);
} StateWalk;

static inline bool states_row_has(const StateRow *row, const char *name)
{
    Str rest = str_from(row->to);
    Str each;
    while (str_split(&rest, ',', &each)) {
        if (str_eq(str_trim(each), str_from(name))) {
            return true;
        }
    }
    return false;
}

static inline unsigned states_row_length(const StateRow *row)
{
    unsigned count = row->to[0] == '\0' ? 0 : 1;
    for (const char *at = row->to; *at != '\0'; at++) {
        count += *at == ',' ? 1 : 0;
    }
    return count;
}

// While on, a refused move is survived as in a release build.
static inline void states_survive(bool on)
{
#ifdef STENTOR_STRICT_STATES
    states_forgive(on);
#else
    (void)on;
#endif
}

static inline void states_walk(const StateWalk *walk)
{
    states_survive(true);
    for (unsigned from = 0; from < walk->count; from++) {
        const StateRow *row = &walk->rows[from];
        unsigned allowed = 0;
        for (unsigned to = 0; to < walk->count; to++) {
            const char *name = walk->rows[to].from;
            unsigned state = from;
            bool moved = walk->move(&state, to);
            if (moved != states_row_has(row, name) || state != (moved ? to : from)) {
                fail_msg("'%s' -> '%s' is %s", row->from, name, moved ? "allowed" : "refused");
            }
            allowed += moved ? 1 : 0;
        }
        assert_int_equal(allowed, states_row_length(row)); // no name is misspelt here
        unsigned state = from;
        assert_false(walk->move(&state, walk->count)); // no state at all
        assert_int_equal(state, from);
    }
    states_survive(false);
}
