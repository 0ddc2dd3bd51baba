// SPDX-License-Identifier: Apache-2.0
// Zone: what the clock on the wall shows in an IANA time zone, and when it shows it. The zones'
// rules are ICU's. Law: a local time that does not exist (clocks went forward) means the first
// instant after the gap; one that exists twice (clocks went back) means the first of the two.
// No clock here: instants are arguments, microseconds since 1970-01-01 UTC. Not for two threads at
// once: zones remember the spans between two changes of the clock.
#pragma once

#include "common/base/error.h"
#include "common/base/str.h"

enum { ZONE_NAME_MAX = 63, MINUTES_OF_DAY = 1440 };

typedef struct Zone Zone;
typedef struct Zones
    Zones; // those that were opened so far: opening one costs far more than using it

Zones *zones_new(void);
void zones_free(Zones *zones); // with all its zones; NULL-safe

// The zone, which is the cache's; "" is UTC. NULL, ERROR_PERMANENT: no IANA time zone; the text
// names it. ICU's own short names ("BST" is Dhaka there) and offsets ("GMT+3") are none.
Zone *zones_get(Zones *zones, Str name, Error *err);
size_t zones_count(const Zones *zones);

const char *zone_name(const Zone *zone); // as it was asked for, "UTC" for ""

typedef struct LocalTime {
    int64_t day;      // days since 1970-01-01 of the local calendar
    int32_t minute;   // of that day by the clock on the wall, [0, 1440)
    int64_t rest_us;  // after that minute, [0, 60,000,000)
    int32_t offset_s; // local time minus UTC
} LocalTime;

LocalTime zone_local(Zone *zone, int64_t at_us);
int64_t zone_instant(
    Zone *zone, int64_t day, int32_t minute); // when the wall shows it, by the law above
int32_t weekday_of(int64_t day);              // 1 Monday .. 7 Sunday
