// SPDX-License-Identifier: Apache-2.0
#include "common/archive/paths.h"

#include <assert.h>
#include <stdio.h>

void archive_part_key(const Unit *unit, const PartName *name, char out[ARCHIVE_KEY_SIZE])
{
    char hash[17];
    hex_encode(name->sha256, 8, hash);
    int64_t day_us = INT64_C(86400) * 1000000;
    const char *period = unit->ends_us - unit->starts_us <= day_us ? "day" : "month";
    int len = snprintf(
        out, ARCHIVE_KEY_SIZE, "%s/%s/tenant=%s/class=%s/%s=%s/%s-%05d-%s.parquet",
        name->cold ? "cold" : "archive", name->stem, name->tenant,
        retention_class_name(unit->class), period, unit->period, name->late ? "late" : "part",
        name->part, hash);
    assert(len < ARCHIVE_KEY_SIZE);
}
