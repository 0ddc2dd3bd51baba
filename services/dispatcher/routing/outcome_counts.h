// SPDX-License-Identifier: Apache-2.0
// OutcomeCounts: how many mails each vendor took and what its callbacks said of them, counted here
// and added every 15 s to dispatcher.vendor_outcomes, where all dispatchers count together; the
// answer is what common/routing/delivery judges. One statement each, none a mail.
//
// Killed in between: the last seconds' counts are lost. A COMMIT without an answer: they count
// twice. Neither moves a share of a quarter of an hour by much.
#pragma once

#include "common/db/db.h"
#include "common/routing/delivery.h"

enum { OUTCOME_COUNTS_MAX = 2048 }; // vendors of all owners

typedef enum VendorReport {
    REPORT_TAKEN,
    REPORT_DELIVERED,
    REPORT_FAILED, // bounced for now, or blocked
    REPORT_ENDED,  // no fault of the vendor
    REPORT_KINDS,
} VendorReport;

typedef struct OutcomeCounts OutcomeCounts;

// on_compared: after each comparison; `poor` of (owner, vendor).
typedef void (*OutcomesCompared)(
    void *ctx, Str owner, Str vendor, bool poor, int percent, int64_t since_poor_us);

OutcomeCounts *outcome_counts_new(DbPool *pool, OutcomesCompared on_compared, void *ctx);
void outcome_counts_free(OutcomeCounts *counts); // NULL-safe; after the pool's last answer
void outcome_counts_note(OutcomeCounts *counts, Str owner, Str vendor, VendorReport kind);
// Every few seconds; adds and compares when it is due, and only once something was counted.
void outcome_counts_tick(OutcomeCounts *counts, int64_t now_us);
