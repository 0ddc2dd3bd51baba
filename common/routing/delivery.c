// SPDX-License-Identifier: Apache-2.0
#include "common/routing/delivery.h"

static const int64_t SECOND_US = 1000000;

static int percent_of(int64_t part, int64_t whole)
{
    return whole >= DELIVERY_MIN && part > 0 ? (int)(part * 100 / whole) : 0;
}

int delivery_poor_percent(const DeliveryCount *count)
{
    int failed = percent_of(count->failed, count->delivered + count->failed);
    int silent = count->reports ? percent_of(count->due - count->reported, count->due) : 0;
    return failed > silent ? failed : silent;
}

// Does it say anything?
static bool is_counted(const DeliveryCount *count)
{
    return count->delivered + count->failed >= DELIVERY_MIN ||
           (count->reports && count->due >= DELIVERY_MIN);
}

void delivery_judge(const DeliveryCount *counts, size_t count, bool *ret_poor)
{
    bool any_good = false;
    for (size_t i = 0; i < count; i++) {
        ret_poor[i] = delivery_poor_percent(&counts[i]) >= DELIVERY_POOR_PERCENT;
        any_good = any_good || (is_counted(&counts[i]) && !ret_poor[i]);
    }
    for (size_t i = 0; i < count && !any_good; i++) {
        ret_poor[i] = false;
    }
}

uint32_t delivery_points(uint32_t points, bool poor, int64_t since_change_us, int64_t since_poor_us)
{
    if (poor) {
        bool more = points == 0 || since_change_us >= DELIVERY_STEP_S * SECOND_US;
        return more && points < DELIVERY_POINTS_MAX ? points + DELIVERY_STEP_POINTS : points;
    }
    bool quiet = since_change_us >= DELIVERY_QUIET_S * SECOND_US &&
                 since_poor_us >= DELIVERY_QUIET_S * SECOND_US;
    if (!quiet) {
        return points;
    }
    return points > DELIVERY_STEP_POINTS ? points - DELIVERY_STEP_POINTS : 0;
}
