// SPDX-License-Identifier: Apache-2.0
// Due work: what a Deferred becomes when its time has come, decided when it arrives. Pure.
// The id under which it goes out is fixed here and stored with it, so however often it is emitted,
// it is one event.
#pragma once

#include "common/base/arena.h"
#include "common/base/error.h"
#include "common/base/id.h"
#include "common/bus/topology.h"

typedef struct DueWork {
    Str work_id; // event id of the Deferred
    Str tenant;
    Str notification_id;
    Str reason;
    int64_t due_at_us;
    char subject[SUBJECT_SIZE];
    char event_id[EVENT_ID_SIZE];
    Str payload;
} DueWork;

// reason "schedule": the request, on its lane, under its own event id. reason "retry": the rendered
// notification, on its lane, under the id derived from its attempt (which the dispatcher has raised
// already). Work that has expired meanwhile is emitted all the same: the stages decide. Slices live
// in `arena`. ERROR_PERMANENT names what is wrong.
bool due_work_read(Str payload, Arena *arena, DueWork *ret_work, Error *err);
