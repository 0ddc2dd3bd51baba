// SPDX-License-Identifier: Apache-2.0
// A day's facts in object storage: Parquet files for analytics, one or more for each tenant and
// table.
//
//   facts/<table>/tenant=<tenant>/day=2026-10-03/part-00000-<16 hex digits of its SHA-256>.parquet
//
// The day is that of the notification, also of its attempts. Blocking; for the archive's process
// and for commands. Law: no body, no address, no reply. The same rows give the same objects; a day
// that is written again replaces what it had, after the new objects are stored.
#pragma once

#include <libpq-fe.h>

#include "common/storage/spool.h"
#include "common/storage/storage_wait.h"

enum { FACTS_PART_BYTES = 128 * 1024 * 1024 };

typedef struct FactsOptions {
    SpoolPlace spool;         // for one object at a time
    const char *installation; // NULL, or whose the objects are
    uint64_t part_bytes;      // about where an object ends; 0: FACTS_PART_BYTES
} FactsOptions;

typedef struct FactsWritten {
    uint64_t rows, objects, bytes;
    uint64_t replaced; // objects of an earlier writing that were deleted
} FactsWritten;

// All tables of the day that begins at `day_us` (UTC midnight), in one snapshot. PERMANENT: a unit
// of that day is no longer in Postgres; its facts stay as they are. TRANSIENT: database, storage,
// spool.
// One process at a time; another waits.
bool facts_write_day(
    PGconn *pg, StorageWait *storage, const FactsOptions *options, int64_t day_us,
    FactsWritten *ret, Error *err);
// Each day of the last nine that is over and not written, and once more after a week (table
// archive.facts_days). *ret_days: how many were written.
bool facts_write_due(
    PGconn *pg, StorageWait *storage, const FactsOptions *options, int *ret_days, Error *err);
