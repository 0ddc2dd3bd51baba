// SPDX-License-Identifier: Apache-2.0
// Endpoints: how fast each incoming URL of a chat service is written to from here. A burst goes at
// once, what comes behind it is given a time of its own, one after the other, so that a hundred
// messages for one channel are no hundred refusals: Discord bans an IP address for these. An
// endpoint that throttled is left alone as long as it says. Each replica counts by itself; what
// they send together too fast is throttled, and held. Pure: time is an argument.
#pragma once

#include "common/base/str.h"

enum {
    ENDPOINTS_MAX = 10000,          // beyond it, and while all are in use, none is paced
    ENDPOINT_HOLD_MIN_MS = 1000,    // after a refusal that names no time
    ENDPOINT_LINE_MAX_S = 6 * 3600, // how far ahead a message is put off at most
};

typedef struct EndpointPace {
    int32_t interval_ms; // between two messages; 0: no pace
    int32_t burst;       // that may go at once
} EndpointPace;

typedef struct Endpoints Endpoints;

Endpoints *endpoints_new(void);
void endpoints_free(Endpoints *endpoints); // NULL-safe
// May a message go there now? false: *ret_due_us is when it comes back, behind those that wait.
bool endpoints_take(
    Endpoints *endpoints, Str address, EndpointPace pace, int64_t now_us, int64_t *ret_due_us);
// It throttled for wait_ms; 0: it names no time.
void endpoints_hold(Endpoints *endpoints, Str address, uint32_t wait_ms, int64_t now_us);
