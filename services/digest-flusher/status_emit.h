// SPDX-License-Identifier: Apache-2.0
// StatusEmit: the status event of due work that is not sent itself: queued (a digest), superseded
// (by a digest), suppressed (cancelled, or no longer wanted). Pure.
#pragma once

#include "common/bus/jetstream/bus.h"

typedef struct StatusEmit {
    Str status; // "queued", "superseded", "suppressed"
    Str reason_code;
    Str detail;
    Str window_id;
    int64_t at_us;
    Str payload; // packed NotificationRequest
} StatusEmit;

// Fills *ret_out; what it points to lives in `arena`. ERROR_PERMANENT: the payload is not a request
// or the status is unknown.
bool status_emit(const StatusEmit *emit, Arena *arena, BusOut *ret_out, Error *err);
