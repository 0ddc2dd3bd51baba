// SPDX-License-Identifier: Apache-2.0
// Callbacks that were refused, as messages on ntf.inbound.rejected: for whom, of which vendor, why,
// and the SHA-256 of the body, never the body. Strangers can make as many as they like, so only
// some of them are recorded; all are counted.
#pragma once

#include "common/bus/jetstream/bus.h"
#include "common/http/server.h"
#include "common/service/metrics.h"
#include "common/vendor/vendor_callback.h"

enum { REJECTED_BURST = 100, REJECTED_PER_S = 10, REJECTED_VENDORS_MAX = 32 };

typedef enum RejectReason {
    REJECT_UNSIGNED,
    REJECT_STALE,
    REJECT_BAD_SIGNATURE,
    REJECT_CAPABILITY,
    REJECT_TOPIC,
    REJECT_REASON_COUNT,
} RejectReason;

typedef struct Rejected {
    Bus *bus;
    Metric *counts[REJECTED_VENDORS_MAX][REJECT_REASON_COUNT]; // in vendor_callback_at's order
    Metric *unrecorded;
    double tokens;
    int64_t filled_us; // 0: never
} Rejected;

void rejected_init(Rejected *rejected, Bus *bus, Metrics *metrics);
void rejected_note(
    Rejected *rejected, HttpRequest *http, Str tenant, Str vendor, RejectReason reason);
