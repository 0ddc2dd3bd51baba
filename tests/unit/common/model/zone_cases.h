// SPDX-License-Identifier: Apache-2.0
// What the tests of local time share: a seeded choice of instants, and zones whose clocks do odd
// things. Included after cmocka.h.
#pragma once

#include "common/base/clock.h"
#include "common/model/zone.h"

enum { RANDOM_ROUNDS = 4000 };

#define MINUTE_US INT64_C(60000000)
#define DAY_US (1440 * MINUTE_US)

// Summer times of an hour and of half an hour (Lord Howe), negative ones (Dublin), over Ramadan
// (Casablanca), at midnight (Beirut, Havana), a skipped day (Apia, 2011), odd offsets, none.
static const char *const ODD_ZONES[] = {
    "Europe/Berlin",     "America/New_York", "Australia/Lord_Howe", "Europe/Dublin",
    "Africa/Casablanca", "Asia/Beirut",      "America/Havana",      "Pacific/Apia",
    "Asia/Kathmandu",    "America/St_Johns", "Pacific/Chatham",     "UTC",
};
enum { ODD_ZONE_COUNT = sizeof ODD_ZONES / sizeof ODD_ZONES[0] };

static inline uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

// From 2000 to 2040; half of the time within two days of a change of Berlin's, Apia's or New York's
// clock, where mistakes live.
static inline int64_t random_instant(uint64_t *state)
{
    static const int64_t CHANGES_S[] = {1774746000, 1792890000, 1325239200, 1772953200, 1793512800};
    int64_t from_us = INT64_C(946684800000000);
    int64_t span_us = INT64_C(1262304000000000);
    if (next_random(state) % 2 == 0) {
        from_us = CHANGES_S[next_random(state) % 5] * 1000000 - 2 * DAY_US;
        span_us = 4 * DAY_US;
    }
    return from_us + (int64_t)(next_random(state) % (uint64_t)span_us);
}

static inline int64_t instant(const char *rfc3339)
{
    int64_t at_us = 0;
    assert_true(clock_parse(str_from(rfc3339), &at_us));
    return at_us;
}

static inline Zone *zone_named(Zones *zones, const char *name)
{
    Error err = {0};
    Zone *zone = zones_get(zones, str_from(name), &err);
    if (zone == NULL) {
        fail_msg("%s", err.text);
    }
    return zone;
}
