// SPDX-License-Identifier: Apache-2.0
// Trimming of DEAD. A campaign to dead addresses makes thousands of letters, and DEAD refuses when
// it is full, which would hold up every stage that has a letter to write. So above 75 % letters go
// until 60 %, from the fullest subject (a stage's of one tenant) its oldest first: a tenant's flood
// costs its own letters before those of others. Law: only a letter goes whose notification has its
// end (letter_end_reported): what it was about stays in the history, and nothing is lost but the
// resend. A subject that has none of them is passed over for the next fullest, up to the fourth. A
// DEAD full of others still refuses.
//
// Killed between two deletions: the next pass goes on. Two replicas at once delete the same ones;
// the second is answered that there is no such letter.
#pragma once

#include "common/bus/jetstream/bus.h"

typedef struct DeadTrim {
    double fill;      // bytes by max_bytes, 0..1, before the pass
    uint64_t removed; // letters, by this pass
    bool stuck; // nearly full, and none of what was read may go: reading it again is of no use
                // for a while
} DeadTrim;

// Once, from the loop. `err`: what stopped the pass; *result has what was done before it.
typedef void (*DeadTrimDone)(void *ctx, const DeadTrim *result, const Error *err);

// removes false: only how full it is. A read that brings nothing for 10 s ends the pass.
void dead_trim_pass(Bus *bus, bool removes, DeadTrimDone on_done, void *ctx);

// Pure, for the pass and its test.
typedef struct DeadState {
    uint64_t bytes, messages, max_bytes;
    uint64_t first, second; // letters of the subject and of the next fullest
} DeadState;
// How many letters of a subject one pass may remove: 0 below the limit; else down to the
// next fullest, or a quarter when that is as full.
uint64_t dead_trim_wanted(const DeadState *state);
