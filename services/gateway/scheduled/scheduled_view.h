// SPDX-License-Identifier: Apache-2.0
// ScheduledView: one thing that waits, as JSON. Pure.
#pragma once

#include <jansson.h>

#include "common/base/arena.h"
#include "common/base/str.h"

typedef struct ScheduledRow {
    Str id;     // of the notification
    Str reason; // "schedule", "quiet", "limit", "digest", "retry"
    int64_t due_at_us;
    bool cancellable;
    Str recipient_id, channel, category, window_id; // empty: unknown, or none
    int64_t attempt;                                // of a retry; 0: none
    Str request; // a packed NotificationRequest; empty: of a retry
} ScheduledRow;

// A new reference. A request that cannot be read is left out, and the rest is shown.
json_t *scheduled_view(const ScheduledRow *row, Arena *arena);
