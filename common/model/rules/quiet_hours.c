// SPDX-License-Identifier: Apache-2.0
#include "common/model/rules/quiet_hours.h"

#include <inttypes.h>

enum { STEPS_MAX = 8 };

bool quiet_hours_check(QuietHours hours, Error *err)
{
    bool good = hours.start_minute >= 0 && hours.start_minute < MINUTES_OF_DAY &&
                hours.end_minute >= 0 && hours.end_minute < MINUTES_OF_DAY;
    return good || error_set(
                       err, ERROR_PERMANENT,
                       "quiet hours from minute %" PRId32 " to %" PRId32
                       " are not within a day; minutes are 0 to 1439",
                       hours.start_minute, hours.end_minute);
}

bool quiet_hours_hold(QuietHours hours, Zone *zone, int64_t at_us)
{
    int32_t minute = zone_local(zone, at_us).minute;
    bool started = minute >= hours.start_minute;
    bool before_end = minute < hours.end_minute;
    return hours.start_minute <= hours.end_minute ? started && before_end : started || before_end;
}

// The wall's next end of the window. In the second of two hours that the wall shows alike the first
// one's end has passed; then the second's is meant.
static int64_t next_end(QuietHours hours, Zone *zone, int64_t at_us)
{
    LocalTime now = zone_local(zone, at_us);
    int64_t day = now.minute < hours.end_minute ? now.day : now.day + 1;
    int64_t end_us = zone_instant(zone, day, hours.end_minute);
    if (end_us > at_us) {
        return end_us;
    }
    int64_t minutes = (day - now.day) * MINUTES_OF_DAY + hours.end_minute - now.minute;
    return at_us - now.rest_us + minutes * INT64_C(60000000);
}

int64_t quiet_hours_end(QuietHours hours, Zone *zone, int64_t at_us)
{
    // More than one step: the end was skipped together with what follows it (a whole day, in Samoa
    // in 2011), and the clock goes on within the next night.
    for (int step = 0; step < STEPS_MAX && quiet_hours_hold(hours, zone, at_us); step++) {
        at_us = next_end(hours, zone, at_us);
    }
    return at_us;
}
