// SPDX-License-Identifier: Apache-2.0
// A replay under way: an ordered read at one end, publishes with a window and a rate at the other.
// Memory is bounded by the reader's batch and the window, whatever the backlog. Copies carry the
// header Stentor-Replay with the run's id.
#pragma once

#include "common/base/map.h"
#include "common/replay/replay_plan.h"
#include "common/session/session.h"

enum { REPLAY_SUBJECTS_MAX = 1000 };

typedef struct ReplayPlace {
    uint64_t sequence; // 0: none
    int64_t stored_at_us;
} ReplayPlace;

// What was seen and done. Counts are of messages.
typedef struct ReplayTally {
    uint64_t verdicts[REPLAY_VERDICT_COUNT];
    uint64_t bytes;      // payloads of the taken
    uint64_t published;  // stored, or handed to the server for --to-subject
    uint64_t duplicates; // of these: were there already under the same id
    uint64_t refused;    // can never be published (too long an id)
    ReplayPlace first, last;
    uint64_t end;      // the last sequence that is wanted
    int64_t end_at_us; // when it was stored, where the sequence alone does not say; 0: it does
    uint64_t next;     // everything before it is done
    bool complete;
    uint64_t removed_before; // not 0: the stream lost older ones before they were read
    int64_t took_us;
    Map *subjects; // subject -> uint64_t *; at most REPLAY_SUBJECTS_MAX
    uint64_t other_subjects;
} ReplayTally;

void replay_tally_init(ReplayTally *tally);
void replay_tally_done(ReplayTally *tally);
void replay_tally_take(ReplayTally *tally, const BusMessage *message); // one that is wanted

// Runs until the end, a failure or SIGINT. false: it failed; the tally says how far it came. An
// interrupt is no failure: then `complete` is false.
bool replay_run(
    Session *session, const ReplayPlan *plan, Arena *arena, ReplayTally *tally, Error *err);
