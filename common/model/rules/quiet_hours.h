// SPDX-License-Identifier: Apache-2.0
// Quiet hours: a window of the local day in which a recipient is left alone. It is about the clock
// on the wall: an hour that is shown twice is twice quiet, one that is skipped never is. Pure.
#pragma once

#include "common/model/zone.h"

// Minutes of the local day, [0, 1440). start > end: it spans midnight. start == end: none.
typedef struct QuietHours {
    int32_t start_minute;
    int32_t end_minute;
} QuietHours;

// ERROR_PERMANENT: a minute that no day has.
bool quiet_hours_check(QuietHours hours, Error *err);
bool quiet_hours_hold(QuietHours hours, Zone *zone, int64_t at_us);
// at_us itself when it is not quiet, else the first instant after it that is not.
int64_t quiet_hours_end(QuietHours hours, Zone *zone, int64_t at_us);
