// SPDX-License-Identifier: Apache-2.0
// Object storage for callers that block: the five verbs of storage.h, each of which returns when it
// is done. One thread at a time; a loop of its own inside.
#pragma once

#include "common/storage/storage.h"

typedef struct StorageWait StorageWait;

StorageWait *storage_wait_open(const StorageOptions *options, Error *err); // NULL: CONFIG
void storage_wait_close(StorageWait *wait);                                // NULL-safe

// *ret (may be NULL) is written only when DONE, *err only when FAILED.
StorageOutcome storage_wait_put(
    StorageWait *wait, const StoragePut *put, StorageInfo *ret, Error *err);
StorageOutcome storage_wait_get(
    StorageWait *wait, Str key, uint64_t offset, uint64_t len, StoragePiece on_piece, void *ctx,
    Error *err);
// Exactly `len` bytes from `offset`; PERMANENT when it is not there or ends before.
bool storage_wait_read(
    StorageWait *wait, Str key, uint64_t offset, void *into, size_t len, Error *err);
StorageOutcome storage_wait_head(StorageWait *wait, Str key, StorageInfo *ret, Error *err);
StorageOutcome storage_wait_list(
    StorageWait *wait, Str prefix, StorageEntry on_entry, void *ctx, Error *err);
StorageOutcome storage_wait_delete(StorageWait *wait, Str key, const char *version, Error *err);
