// SPDX-License-Identifier: Apache-2.0
// Delivery: whether a vendor that takes mails also delivers them, judged by its callbacks. A vendor
// is poor when 15 of 100 mails that it reports on bounced for now or were blocked, or when it has
// said nothing of 15 of 100 that it took; but not when every vendor is, for then the mailboxes are
// at fault. A poor vendor loses ten points of a hundred of its step's mails, ten more every five
// minutes, and has ten back after each quarter of an hour in which it was not poor. Pure: time is
// an argument.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DELIVERY_COMPARE_S = 15, // between two comparisons
    DELIVERY_WITHIN_S = 300, // what was taken is to be reported within it
    DELIVERY_WINDOW_S = 900,
    DELIVERY_MIN = 20, // fewer mails say nothing
    DELIVERY_POOR_PERCENT = 15,
    DELIVERY_STEP_POINTS = 10,
    DELIVERY_POINTS_MAX = 90,
    DELIVERY_STEP_S = 300, // until a step shows in what is delivered
    DELIVERY_QUIET_S = 900,
};

// Of one vendor and owner.
typedef struct DeliveryCount {
    int64_t delivered, failed; // reported in the last DELIVERY_WINDOW_S
    int64_t due;               // taken in a window that ended DELIVERY_WITHIN_S ago
    int64_t reported;          // on any mail, from the begin of that window until now
    bool reports;              // it has reported deliveries lately
} DeliveryCount;

// In percent: the worse of the two shares; 0 when too few mails say something.
int delivery_poor_percent(const DeliveryCount *count);
// ret_poor[i]: count i is poor, and another one is not.
void delivery_judge(const DeliveryCount *counts, size_t count, bool *ret_poor);
// The points that it loses from now on. since_change_us: since they changed last; since_poor_us:
// since it was found poor last.
uint32_t delivery_points(
    uint32_t points, bool poor, int64_t since_change_us, int64_t since_poor_us);
