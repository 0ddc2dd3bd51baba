// SPDX-License-Identifier: Apache-2.0
// What became of a notification, step by step, in the order of its times. Pure. History keeps when
// each status was reached first and every attempt, not every event: so a step is as old as its
// first time, and only the last status and the attempts have a reason.
#pragma once

#include "services/gateway/notifications/notification_view.h"

enum { TIMELINE_STEPS_MAX = NOTIFICATION_ATTEMPTS_MAX + 16 };

typedef struct TimelineStep {
    Str status; // of the API, or "rendered": its content was made
    int64_t at_us;
    int64_t until_us; // of `scheduled`: the time that it waited for; 0: not known
    Str reason_code, reason;
    const NotificationAttempt *attempt; // that brought it; NULL: none
    int order;                          // among those of the same time
} TimelineStep;

// At most TIMELINE_STEPS_MAX, in their order. The attempts are in theirs and at most
// NOTIFICATION_ATTEMPTS_MAX; they and the row are borrowed.
size_t timeline_make(
    const HistoryRow *row, const NotificationAttempt *attempts, size_t attempt_count,
    TimelineStep ret[TIMELINE_STEPS_MAX]);
// ",\"timeline\":[...]", and how many attempts before them are left out, if any.
void timeline_print(
    Buf *out, const HistoryRow *row, const NotificationAttempt *attempts, size_t attempt_count,
    int64_t attempts_before);
