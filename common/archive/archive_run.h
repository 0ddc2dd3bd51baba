// SPDX-License-Identifier: Apache-2.0
// Units taken as far as their rules allow, one after the other, oldest first; and what else an
// operator asks of the bucket. The caller owns the bucket (owner_take).
#pragma once

#include "common/archive/archive.h"
#include "common/base/buf.h"

typedef struct ArchiveRun {
    const char *unit;        // NULL: all
    int64_t hot_us;          // instead of the classes' hot spans; negative: theirs
    bool quiet;              // tables may be detached now
    bool at_once;            // what is expired is deleted now, not a day later
    bool (*stop)(void *ctx); // asked between two steps; NULL: never
    void *ctx;
} ArchiveRun;

typedef struct ArchiveRan {
    int64_t units; // that moved
    int64_t steps;
    int64_t failed;
    char failure[240]; // the first one's text
} ArchiveRan;

// A unit's failure is noted in its row and the others go on. false: nothing can go on (database
// away, the bucket is another's, stopped).
bool archive_run(Archive *archive, const ArchiveRun *run, ArchiveRan *ret, Error *err);
// Fetches, hashes and decodes every object of the unit (NULL: of all), compares the manifests with
// the bucket, and follows the chains of manifests and journal. Each fault is a line in `faults`;
// *ret_objects: how many objects were looked at. false: it could not be done.
bool archive_verify(
    Archive *archive, const char *unit, Buf *faults, int64_t *ret_objects, Error *err);
// Objects of this installation that no row names, older than that: a line each in `found` (key,
// tab, bytes). `removes`: they are deleted, but none that is younger than ORPHAN_DELETE_HOURS: its
// row may be under way.
enum { ORPHAN_DELETE_HOURS = 24 };
typedef struct ArchiveOrphans {
    int64_t older_us;
    bool removes;
    int64_t count;
    uint64_t bytes;
} ArchiveOrphans;
bool archive_orphans(Archive *archive, ArchiveOrphans *orphans, Buf *found, Error *err);
