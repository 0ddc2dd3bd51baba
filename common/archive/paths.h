// SPDX-License-Identifier: Apache-2.0
// The names of a unit's objects. Pure. Each part of content has its hash in the name, so a name is
// never used for other bytes.
//   archive/notifications/tenant=acme/class=record/month=2026-10/part-00000-<16 hex>.parquet
//   cold/notifications/...                     the same in the cold tier
//   manifest/notifications/record/2026-10/00001.json   made by archive.make_manifest
#pragma once

#include "common/archive/unit/units.h"

enum { ARCHIVE_KEY_SIZE = 400 };

typedef struct PartName {
    const char *stem; // of the table
    const char *tenant;
    bool cold, late;
    int part;
    const uint8_t *sha256;
} PartName;

void archive_part_key(const Unit *unit, const PartName *name, char out[ARCHIVE_KEY_SIZE]);
