// SPDX-License-Identifier: Apache-2.0
// Units of rows between Postgres and object storage: what one process needs for it. Blocking; one
// thread; for a process of its own (services/archiver/archive) and for commands.
//
// Law: nothing is removed from Postgres that was not read back from the bucket and counted equal;
// nothing is deleted from the bucket but by a row that says so, by key and version, and by the
// owner (owner.h). Every step may be cut short anywhere and is done again with the same effect.
#pragma once

#include <libpq-fe.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/model/retention/retention.h"
#include "common/storage/spool.h"
#include "common/storage/storage_wait.h"

typedef struct ArchiveProgress {
    // What is done now, and how much of it, as often as a few megabytes. May be NULL.
    void (*step)(void *ctx, const char *step, const char *unit);
    void (*more)(void *ctx, uint64_t rows, uint64_t bytes);
    void *ctx;
} ArchiveProgress;

typedef struct ArchiveOptions { // borrowed for as long as the Archive lives
    const char *database_url;
    StorageOptions storage;
    SpoolPlace spool;       // for one object at a time
    uint64_t part_bytes;    // about where an object ends
    uint64_t part_rows;     // where it ends at the latest
    const char *cold_class; // storage class of the cold tier; NULL: the bucket's default
    RetentionPlan plan;
    int64_t grace_us; // between detaching a unit's tables and dropping them
    ArchiveProgress progress;
} ArchiveOptions;

typedef struct Archive {
    const ArchiveOptions *options;
    PGconn *pg; // the catalogue's; rows go over a connection of their own
    StorageWait *storage;
    char installation[STORAGE_OWNER_SIZE];
    int64_t epoch; // 0: the bucket is not taken
    char epoch_text[24];
    char token[40];
    bool conditions; // the server keeps PUT's conditions
    int64_t owner_changed_us;
    int64_t renew_us; // monotonic: when the token is to be renewed
} Archive;

// CONFIG: the URL of the storage. TRANSIENT: the database. Nothing is taken yet.
bool archive_open(Archive *archive, const ArchiveOptions *options, Error *err);
void archive_close(Archive *archive); // also after a failure
// The bucket again by a new connection, so that it reads the stored object.
bool archive_reopen_storage(Archive *archive, Error *err);
void archive_step(const Archive *archive, const char *step, const char *unit);
void archive_more(Archive *archive, uint64_t rows, uint64_t bytes); // renews the bucket's token too
