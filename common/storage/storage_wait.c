// SPDX-License-Identifier: Apache-2.0
#include "common/storage/storage_wait.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"

struct StorageWait {
    uv_loop_t loop;
    Storage *storage;
    bool done;
    StorageOutcome outcome;
    StorageInfo info;
    Error err;
    StoragePiece on_piece; // of the caller, as on_entry
    StorageEntry on_entry;
    void *ctx;
};

static void on_freed(void *ctx)
{
    ((StorageWait *)ctx)->done = true;
}

static void run(StorageWait *wait)
{
    while (!wait->done) {
        int active = uv_run(&wait->loop, UV_RUN_ONCE);
        assert(active != 0 || wait->done);
        (void)active;
    }
}

static void free_loop(StorageWait *wait)
{
    int closed = uv_loop_close(&wait->loop);
    assert(closed == 0);
    (void)closed;
    free(wait);
}

StorageWait *storage_wait_open(const StorageOptions *options, Error *err)
{
    StorageWait *wait = xcalloc(1, sizeof *wait);
    int made = uv_loop_init(&wait->loop);
    if (made != 0) {
        error_set(err, ERROR_TRANSIENT, "storage: no loop: %s", uv_strerror(made));
        free(wait);
        return NULL;
    }
    StorageOptions own = *options;
    own.blocks = true;
    wait->storage = storage_new(&wait->loop, &own, err);
    if (wait->storage == NULL) {
        free_loop(wait);
        return NULL;
    }
    return wait;
}

void storage_wait_close(StorageWait *wait)
{
    if (wait != NULL) {
        wait->done = false;
        storage_free(wait->storage, on_freed, wait);
        run(wait);
        free_loop(wait);
    }
}

static void on_done(void *ctx, StorageOutcome outcome, const StorageInfo *info, const Error *err)
{
    StorageWait *wait = ctx;
    wait->done = true;
    wait->outcome = outcome;
    if (info != NULL) {
        wait->info = *info;
    }
    if (err != NULL) {
        wait->err = *err;
    }
}

static bool on_piece(void *ctx, const void *bytes, size_t len)
{
    StorageWait *wait = ctx;
    return wait->on_piece(wait->ctx, bytes, len);
}

static void on_entry(void *ctx, Str key, const StorageInfo *info)
{
    StorageWait *wait = ctx;
    wait->on_entry(wait->ctx, key, info);
}

static StorageOutcome finish(StorageWait *wait, StorageInfo *ret, Error *err)
{
    run(wait);
    if (wait->outcome == STORAGE_DONE && ret != NULL) {
        *ret = wait->info;
    }
    if (wait->outcome == STORAGE_FAILED && err != NULL) {
        *err = wait->err;
    }
    return wait->outcome;
}

StorageOutcome storage_wait_put(
    StorageWait *wait, const StoragePut *put, StorageInfo *ret, Error *err)
{
    wait->done = false;
    storage_put(wait->storage, put, on_done, wait);
    return finish(wait, ret, err);
}

StorageOutcome storage_wait_get(
    StorageWait *wait, Str key, uint64_t offset, uint64_t len, StoragePiece piece, void *ctx,
    Error *err)
{
    wait->done = false;
    wait->on_piece = piece;
    wait->ctx = ctx;
    storage_get(wait->storage, key, offset, len, on_piece, on_done, wait);
    return finish(wait, NULL, err);
}

typedef struct Target {
    char *at;
    size_t left;
} Target;

static bool on_target_piece(void *ctx, const void *bytes, size_t len)
{
    Target *target = ctx;
    size_t taken = len < target->left ? len : target->left;
    memcpy(target->at, bytes, taken);
    target->at += taken;
    target->left -= taken;
    return target->left > 0;
}

bool storage_wait_read(
    StorageWait *wait, Str key, uint64_t offset, void *into, size_t len, Error *err)
{
    if (len == 0) {
        return true;
    }
    Target target = {into, len};
    StorageOutcome outcome =
        storage_wait_get(wait, key, offset, len, on_target_piece, &target, err);
    if (outcome == STORAGE_FAILED) {
        return false;
    }
    return target.left == 0 ||
           error_set(
               err, ERROR_PERMANENT, "object '" STR_FMT "' %s", STR_ARG(str_slice(key, 0, 160)),
               outcome == STORAGE_ABSENT ? "is not there" : "ends too early");
}

StorageOutcome storage_wait_head(StorageWait *wait, Str key, StorageInfo *ret, Error *err)
{
    wait->done = false;
    storage_head(wait->storage, key, on_done, wait);
    return finish(wait, ret, err);
}

StorageOutcome storage_wait_list(
    StorageWait *wait, Str prefix, StorageEntry entry, void *ctx, Error *err)
{
    wait->done = false;
    wait->on_entry = entry;
    wait->ctx = ctx;
    storage_list(wait->storage, prefix, on_entry, on_done, wait);
    return finish(wait, NULL, err);
}

StorageOutcome storage_wait_delete(StorageWait *wait, Str key, const char *version, Error *err)
{
    wait->done = false;
    storage_delete(wait->storage, key, version, on_done, wait);
    return finish(wait, NULL, err);
}
