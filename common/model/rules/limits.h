// SPDX-License-Identifier: Apache-2.0
// Limits: how many notifications a tenant sends, or one recipient gets, in a minute and in a day of
// UTC. Whatever is over the limit takes a place in a later minute or day: its turn. So a burst
// comes out at the limit's own pace and not all at once when the minute is over. Pure; the counters
// are kept by ingest (migrations/ingest, gate_counters).
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct Limits {
    uint32_t per_minute; // 0: none
    uint32_t per_day;    // 0: none
} Limits;

typedef enum OverLimit {
    OVER_LIMIT_DEFER = 0, // to its turn
    OVER_LIMIT_SUPPRESS,
} OverLimit;

// One notification's place, counted from 1 at the beginning of the current minute and day; 0: it
// was not counted.
typedef struct LimitPlace {
    int64_t of_minute;
    int64_t of_day;
} LimitPlace;

bool limits_any(const Limits *limits);
// When its turn is: 0: now (within the limits); else the beginning of a later minute.
int64_t limits_turn(const Limits *limits, const LimitPlace *place, int64_t now_us);
