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
//   claimed or sending --> moving --> claimed     (surely not sent: to the next vendor)
//                             '-----> recording
//
//   any but sending --> ended
//
// moving: its claim is on the way to another vendor, in the ledger. held: another mail of its
// tenant goes first (turns.h). refused: the ledger has a row for it. recording and releasing: its
// outcome, or its claim, is on the way to the ledger. recorded: its row is to be published. proved:
// a callback had settled it; a redelivery reads that.
//
// Law: only the vendor moves a job out of sending: nothing ends a job that it may still send.
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
    JOB_MOVING,
    JOB_RECORDING,
    JOB_RELEASING,
    JOB_RECORDED,
    JOB_PROVED,
    JOB_ENDED,
    JOB_STATE_COUNT,
} JobState;

// false: not allowed, nothing changed (common/base/states/states.h). `name` is the attempt's.
bool job_state_move(JobState *state, JobState next, Str name);

// This process holds its claim in the ledger, and must keep it.
bool job_state_is_claimed(JobState state);
// No callback of it is pending: the caller must move it on.
bool job_state_is_at_rest(JobState state);
