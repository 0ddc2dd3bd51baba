// SPDX-License-Identifier: Apache-2.0
// links: stentor_model
// The first line is the name of a zone, as a tenant or a recipient has it; eight bytes after it an
// instant. What is a zone keeps its laws at that instant.
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/model/rules/digest_window.h"
#include "common/model/rules/quiet_hours.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define YEARS_US INT64_C(4102444800000000) // until 2100

static void check_zone(Zone *zone, uint64_t seed)
{
    int64_t at_us = (int64_t)(seed % (uint64_t)YEARS_US);
    LocalTime local = zone_local(zone, at_us);
    assert(local.minute >= 0 && local.minute < MINUTES_OF_DAY);
    assert(zone_instant(zone, local.day, local.minute) <= at_us);
    QuietHours hours = {(int32_t)(seed % MINUTES_OF_DAY), (int32_t)(seed / 7 % MINUTES_OF_DAY)};
    assert(!quiet_hours_hold(hours, zone, quiet_hours_end(hours, zone, at_us)));
    DigestPlan plan = {FREQUENCY_WEEKLY, hours.start_minute, (int32_t)(seed % 8)};
    assert(digest_window_flush_at(&plan, zone, at_us) > at_us);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Str rest = str_of(data, size);
    Str name = STR_EMPTY;
    (void)str_split(&rest, '\n', &name);
    uint64_t seed = 0;
    if (rest.len > 0) {
        memcpy(&seed, rest.ptr, rest.len < sizeof seed ? rest.len : sizeof seed);
    }
    Zones *zones = zones_new();
    Error err = {0};
    Zone *zone = zones_get(zones, name, &err);
    if (zone != NULL) {
        check_zone(zone, seed);
    } else {
        assert(err.kind == ERROR_PERMANENT && err.text[0] != '\0' && zones_count(zones) == 0);
    }
    zones_free(zones);
    return 0;
}
