// SPDX-License-Identifier: Apache-2.0
// Digest windows: when what is gathered now goes out. The borders are the same for every
// caller: all instants of a window have the same flush_at, which lies after them. Pure.
#pragma once

#include "common/model/enums.h"
#include "common/model/zone.h"

typedef struct DigestPlan {
    Frequency frequency;
    int32_t at_minute;  // daily, weekly: minute of the local day
    int32_t on_weekday; // weekly: 1 Monday .. 7 Sunday; 0: Monday
} DigestPlan;

// true: hourly, daily or weekly. Immediate is no digest.
bool digest_plan_gathers(const DigestPlan *plan);

// The first border after at_us. Hourly: every full hour of UTC (half past in India). Daily and
// weekly: the local minute; where the clock skips it, the first instant after the gap; where it
// shows it twice, the first. at_us + 1 s for a plan that does not gather.
int64_t digest_window_flush_at(const DigestPlan *plan, Zone *zone, int64_t at_us);
