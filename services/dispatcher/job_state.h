// SPDX-License-Identifier: Apache-2.0
// Where a job is on its way through the dispatcher: one enumeration, one writer, one table of moves
// (job_state.c; job_state_test.c walks all pairs).
//
//   admitted ---------> opening --> claiming --> claimed
//       '----> held -------^            |           ^
//                                       v           |
//                                    refused --> taking over
//                                     |   '----> parking --> recorded
//                                     '--------------------> recorded
//
//   claimed --+--> sending --+--> recording --+--> recorded
//             |              |                '--> proved
//             |              '--> releasing
//             +--> recording            (decided or postponed: not sent)
//             '--> releasing            (the process stops)
//
//   any but sending --> ended
//
// held: another of its tenant goes first (turns.h). refused: the ledger has a row of it. recording
// and releasing: its outcome, or its claim, is on the way to the ledger. recorded: what its row
// says is to be published. proved: a callback had settled it; a redelivery reads that.
//
// Law: from sending only the vendor leads further: nothing ends a job that it may still send.
#pragma once

#include <stdbool.h>

#include "common/base/str.h"

typedef enum JobState {
    JOB_ADMITTED,
    JOB_HELD,
    JOB_OPENING,
    JOB_CLAIMING,
    JOB_REFUSED,
    JOB_TAKING_OVER,
    JOB_PARKING,
    JOB_CLAIMED,
    JOB_SENDING,
    JOB_RECORDING,
    JOB_RELEASING,
    JOB_RECORDED,
    JOB_PROVED,
    JOB_ENDED,
    JOB_STATE_COUNT,
} JobState;

// false: refused, nothing changed (common/base/states/states.h). `name` is the attempt's.
bool job_state_move(JobState *state, JobState next, Str name);

// Its claim in the ledger is this process's, and is to stay so.
bool job_state_is_claimed(JobState state);
// Nothing is under way that will come back to the job: whoever holds it must lead it further.
bool job_state_is_at_rest(JobState state);
