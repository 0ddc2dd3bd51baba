// SPDX-License-Identifier: Apache-2.0
// Killed after the put: the object is there and no row names it; the window is read and stored
// again, under the same name when it ends at the same message, else the first one is an orphan.
#include "services/archiver/log/log_store.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"
#include "common/base/crash.h"

struct LogStore {
    Storage *storage;
    char installation[STORAGE_OWNER_SIZE];
    LogFile *file; // NULL: not busy
    bool was_there;      // the put met an object of this name
    Sha256 *digest;      // of what is read back
    uint64_t bytes;
    LogStored on_stored;
    void *ctx;
    void (*on_freed)(void *ctx);
    void *freed_ctx;
};

LogStore *log_store_new(uv_loop_t *loop, const StorageOptions *options, Error *err)
{
    Storage *storage = storage_new(loop, options, err);
    if (storage == NULL) {
        return NULL;
    }
    LogStore *store = xcalloc(1, sizeof *store);
    store->storage = storage;
    return store;
}

static void on_storage_freed(void *ctx)
{
    LogStore *store = ctx;
    void (*on_freed)(void *ctx) = store->on_freed;
    void *freed_ctx = store->freed_ctx;
    free(store);
    on_freed(freed_ctx);
}

void log_store_free(LogStore *store, void (*on_freed)(void *ctx), void *ctx)
{
    assert(store->file == NULL);
    store->on_freed = on_freed;
    store->freed_ctx = ctx;
    storage_free(store->storage, on_storage_freed, store);
}

Storage *log_store_storage(LogStore *store)
{
    return store->storage;
}

void log_store_own(LogStore *store, Str installation)
{
    (void)str_to_c(installation, store->installation, sizeof store->installation);
}

bool log_store_busy(const LogStore *store)
{
    return store->file != NULL;
}

static void finish(LogStore *store, const Error *err)
{
    store->file = NULL;
    store->on_stored(store->ctx, err);
}

// ---- 2: read back ----

static void put(LogStore *store, StorageCondition condition);

static bool on_piece(void *ctx, const void *bytes, size_t len)
{
    LogStore *store = ctx;
    sha256_add(store->digest, str_of(bytes, len));
    store->bytes += len;
    return true;
}

static void finish_read(
    LogStore *store, StorageOutcome outcome, const StorageInfo *info, const Error *failure)
{
    LogFile *file = store->file;
    uint8_t found[SHA256_LEN];
    sha256_end(store->digest, found);
    if (outcome == STORAGE_FAILED) {
        finish(store, failure);
        return;
    }
    bool same = outcome == STORAGE_DONE && store->bytes == file->bytes &&
                memcmp(found, file->sha256, sizeof found) == 0;
    if (same) {
        memcpy(file->version, info->version, sizeof file->version);
        CRASH_POINT("archiver.segment_verified");
        finish(store, NULL);
    } else if (store->was_there) {
        put(store, STORAGE_ALWAYS); // it was damaged; the name is of these bytes alone
    } else {
        Error err;
        error_set(
            &err, ERROR_PERMANENT, "object '%.120s' %s", file->key,
            outcome == STORAGE_ABSENT ? "is not there" : "has other bytes");
        finish(store, &err);
    }
}

static void on_read(void *ctx, StorageOutcome outcome, const StorageInfo *info, const Error *err)
{
    finish_read(ctx, outcome, info, err);
}

// ---- 1: put ----

static void finish_put(LogStore *store, StorageOutcome outcome, const Error *err)
{
    if (outcome == STORAGE_FAILED) {
        finish(store, err);
        return;
    }
    CRASH_POINT("archiver.segment_put");
    store->was_there = outcome == STORAGE_PRECONDITION;
    store->digest = sha256_begin();
    store->bytes = 0;
    storage_get(store->storage, str_from(store->file->key), 0, 0, on_piece, on_read, store);
}

static void on_put(void *ctx, StorageOutcome outcome, const StorageInfo *info, const Error *err)
{
    (void)info;
    finish_put(ctx, outcome, err);
}

static void put(LogStore *store, StorageCondition condition)
{
    StoragePut wanted = {
        .key = str_from(store->file->key),
        .fd = store->file->fd,
        .len = store->file->bytes,
        .condition = condition,
        .installation = store->installation[0] != '\0' ? store->installation : NULL};
    memcpy(wanted.sha256, store->file->sha256, sizeof wanted.sha256);
    storage_put(store->storage, &wanted, on_put, store);
}

void log_store_put(LogStore *store, LogFile *file, LogStored on_stored, void *ctx)
{
    assert(store->file == NULL);
    store->file = file;
    store->on_stored = on_stored;
    store->ctx = ctx;
    put(store, STORAGE_IF_ABSENT);
}
