// SPDX-License-Identifier: Apache-2.0
// DueWork: a Deferred, read when it arrives. Pure. The id under which it is published is fixed here
// and stored with it, so however often it is published, it is one event.
#pragma once

#include "common/base/arena.h"
#include "common/base/error.h"
#include "common/base/id.h"
#include "common/bus/topology/topology.h"
#include "stentor/v1/deferred.pb-c.h"

typedef enum WorkKind {
    WORK_SEND,   // waits for its time: schedule, quiet, limit, retry, saga
    WORK_GATHER, // waits in a window: digest
    WORK_CANCEL, // ends waiting work
} WorkKind;

typedef struct DueWork {
    WorkKind kind;
    Str work_id; // event id of the Deferred
    Str tenant;
    Str notification_id; // empty: of a cancellation, or of a domain event
    Str reason;
    int64_t due_at_us;
    char subject[SUBJECT_SIZE];
    char event_id[EVENT_ID_SIZE];
    Str payload;
    Str cancel_key; // empty: it cannot be cancelled. Of a cancellation: the key that it cancels
    int64_t caused_at_us; // when the notification was caused; only a later cancellation ends it
    int64_t event_at_us;  // of the event behind it; a newer one of its cancel_key supersedes it
    Str source_event_id;  // orders two of the same time; empty: no event is behind it
    Str recipient_id;     // whose preferences may stop it; empty: none can
    Str to_recipient;     // whom it is for; empty: an inline address
    uint32_t attempt;     // of a retry: which one it will be
    Category category;
    Channel channel;
    int64_t accepted_at_us;
    int64_t expires_at_us;                   // 0: never
    const Stentor__V1__DigestWindow *window; // WORK_GATHER
    const Stentor__V1__Cancel *cancel;       // WORK_CANCEL
} DueWork;

// A request (all reasons but "retry") goes out on its lane, under its own event id; a rendered
// notification ("retry") on its lane, under the id derived from its attempt (which the dispatcher
// has incremented already); a domain event ("saga") on EVENTS, under its Deferred's id. Work that
// has expired meanwhile is published too: the stages decide. What it points to lives in `arena`.
// ERROR_PERMANENT names what is wrong.
bool due_work_read(Str payload, Arena *arena, DueWork *ret_work, Error *err);
