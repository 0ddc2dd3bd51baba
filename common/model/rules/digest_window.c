// SPDX-License-Identifier: Apache-2.0
#include "common/model/rules/digest_window.h"

enum { DAYS_OF_WEEK = 7, TRIES_MAX = 4 };

#define SECOND_US INT64_C(1000000)
#define HOUR_US (3600 * SECOND_US)

bool digest_plan_gathers(const DigestPlan *plan)
{
    return plan->frequency == FREQUENCY_HOURLY || plan->frequency == FREQUENCY_DAILY ||
           plan->frequency == FREQUENCY_WEEKLY;
}

// A day's border may have passed although its local time has not come again, hence the search.
static int64_t next_border(
    Zone *zone, int64_t at_us, int64_t first_day, int64_t every_days, int32_t minute)
{
    int64_t border_us = at_us;
    for (int i = 0; i < TRIES_MAX && border_us <= at_us; i++) {
        border_us = zone_instant(zone, first_day + i * every_days, minute);
    }
    return border_us;
}

int64_t digest_window_flush_at(const DigestPlan *plan, Zone *zone, int64_t at_us)
{
    if (!digest_plan_gathers(plan)) {
        return at_us + SECOND_US;
    }
    if (plan->frequency == FREQUENCY_HOURLY) {
        return at_us - at_us % HOUR_US + HOUR_US;
    }
    int64_t today = zone_local(zone, at_us).day;
    if (plan->frequency == FREQUENCY_DAILY) {
        return next_border(zone, at_us, today, 1, plan->at_minute);
    }
    int32_t wanted = plan->on_weekday == 0 ? 1 : plan->on_weekday;
    int32_t ahead = (wanted - weekday_of(today) + DAYS_OF_WEEK) % DAYS_OF_WEEK;
    return next_border(zone, at_us, today + ahead, DAYS_OF_WEEK, plan->at_minute);
}
