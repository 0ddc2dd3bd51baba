// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include "common/replay/replay_run.h"

void replay_tally_init(ReplayTally *tally)
{
    *tally = (ReplayTally){.subjects = map_new(free)};
}

void replay_tally_done(ReplayTally *tally)
{
    map_free(tally->subjects);
}

static void count_subject(ReplayTally *tally, Str subject)
{
    uint64_t *count = map_get(tally->subjects, subject);
    if (count == NULL && map_count(tally->subjects) >= REPLAY_SUBJECTS_MAX) {
        tally->other_subjects++;
        return;
    }
    if (count == NULL) {
        count = xcalloc(1, sizeof *count);
        map_put(tally->subjects, subject, count);
    }
    ++*count;
}

void replay_tally_take(ReplayTally *tally, const BusMessage *message)
{
    ReplayPlace place = {message->sequence, message->stored_at_us};
    tally->first = tally->first.sequence == 0 ? place : tally->first;
    tally->last = place;
    tally->bytes += message->payload.len;
    count_subject(tally, message->subject);
}
