// SPDX-License-Identifier: Apache-2.0
// A cancellation as a message on ntf.deferred.cancel.<tenant> (stentor.v1.Cancel): what waits under
// a key does not go out. Pure.
#pragma once

#include "common/bus/jetstream/bus.h"

typedef struct CancelEvent {
    Str tenant;
    Str cancel_key;
    int64_t before_us;  // what was caused earlier
    Str newer_event_id; // what takes its place; empty: nothing does, it is obsolete
    const char *reason; // for an operator
    Str event_id;
    Str causation_id;
    int64_t at_us;
    Str traceparent;
} CancelEvent;

// Everything that *ret_out points to lives in `arena`.
bool cancel_event(const CancelEvent *event, Arena *arena, BusOut *ret_out, Error *err);
