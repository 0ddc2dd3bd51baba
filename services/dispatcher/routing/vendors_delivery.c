// SPDX-License-Identifier: Apache-2.0
// Whether the vendors deliver what they take: what they took and what their callbacks say is
// counted (outcome_counts.c), and a vendor that is poor is degraded in CONFIG, for all dispatchers.
#include <stdio.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "services/dispatcher/routing/vendors_internal.h"

static const int64_t OLD_US = INT64_C(1000000) * (DELIVERY_WITHIN_S + DELIVERY_WINDOW_S);

void vendor_note_taken(const VendorPlace *place)
{
    OutcomeCounts *outcomes = place->vendors->outcomes;
    if (outcomes != NULL && place->api != NULL) {
        outcome_counts_note(
            outcomes, str_from(place->owner), str_from(place->vendor.name), REPORT_TAKEN);
    }
}

// false: it says nothing of what became of the mail.
static bool read_report(Status status, Str reason_code, VendorReport *ret)
{
    if (status == STATUS_DELIVERED) {
        *ret = REPORT_DELIVERED;
        return true;
    }
    if (status != STATUS_BOUNCED && status != STATUS_FAILED) {
        return false;
    }
    bool failed = str_eq(reason_code, STR("soft_bounce")) || str_eq(reason_code, STR("blocked"));
    *ret = failed ? REPORT_FAILED : REPORT_ENDED;
    return true;
}

void vendors_heard(
    Vendors *vendors, Str tenant, Str vendor, Status status, Str reason_code, int64_t at_us)
{
    VendorReport report;
    if (vendors->outcomes == NULL || clock_now_us() - at_us > OLD_US ||
        !read_report(status, reason_code, &report)) {
        return;
    }
    const CredentialEntry *entry = routes_account(vendors->routes, tenant, vendor, STR_EMPTY);
    if (entry != NULL) {
        outcome_counts_note(vendors->outcomes, str_from(entry->tenant), vendor, report);
    }
}

// ---- what the comparison means ----

VendorPlace *vendors_find_place(const Vendors *vendors, Str owner, Str vendor)
{
    Str name;
    void *value;
    for (size_t i = 0; map_next(vendors->places, &i, &name, &value);) {
        VendorPlace *place = value;
        if (place->api != NULL && str_eq(str_from(place->owner), owner) &&
            str_eq(str_from(place->vendor.name), vendor)) {
            return place;
        }
    }
    return NULL;
}

static void on_compared(
    void *ctx, Str owner, Str vendor, bool poor, int percent, int64_t since_poor_us)
{
    const Vendors *vendors = ctx;
    VendorPlace *place = vendors_find_place(vendors, owner, vendor);
    if (place == NULL || place->down_since_us > 0) {
        return; // another dispatcher sends through it, or its breaker says more
    }
    int64_t now_us = clock_now_us();
    int64_t changed_at_us = 0;
    uint32_t points = vendors_points(vendors, place, &changed_at_us);
    uint32_t next = delivery_points(points, poor, now_us - changed_at_us, since_poor_us);
    char reason[VENDOR_REASON_MAX];
    (void)snprintf(
        reason, sizeof reason, "%d of 100 mails are not delivered; other vendors deliver theirs",
        percent);
    if (next != points && vendors_store_points(place, next, reason)) {
        bool worse = next > points;
        LOG(worse ? LOG_WARN : LOG_INFO,
            worse ? "a vendor takes mails and does not deliver them; it gets fewer"
                  : "a vendor delivers again; it gets more mails",
            log_text("vendor", place->vendor.name), log_text("owner", place->owner),
            log_int("percent", percent), log_int("points", next));
    }
}

OutcomeCounts *vendors_count_outcomes(Vendors *vendors)
{
    return vendors->parts.pool != NULL
               ? outcome_counts_new(vendors->parts.pool, on_compared, vendors)
               : NULL;
}
