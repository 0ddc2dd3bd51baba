// SPDX-License-Identifier: Apache-2.0
#include "common/model/rules/limits.h"

#define MINUTE_US INT64_C(60000000)
#define DAY_US (1440 * MINUTE_US)

bool limits_any(const Limits *limits)
{
    return limits->per_minute > 0 || limits->per_day > 0;
}

// Whole windows that must pass before it.
static int64_t windows_ahead(int64_t place, uint32_t limit)
{
    return limit == 0 || place <= 0 ? 0 : (place - 1) / limit;
}

int64_t limits_turn(const Limits *limits, const LimitPlace *place, int64_t now_us)
{
    int64_t days = windows_ahead(place->of_day, limits->per_day);
    if (days > 0) {
        // Within its day it comes at the pace of the minutes.
        int64_t of_that_day = place->of_day - days * limits->per_day;
        int64_t minutes = windows_ahead(of_that_day, limits->per_minute);
        return now_us - now_us % DAY_US + days * DAY_US + minutes * MINUTE_US;
    }
    int64_t minutes = windows_ahead(place->of_minute, limits->per_minute);
    return minutes == 0 ? 0 : now_us - now_us % MINUTE_US + minutes * MINUTE_US;
}
