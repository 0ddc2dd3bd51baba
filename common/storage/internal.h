// SPDX-License-Identifier: Apache-2.0
// What stands behind storage.h: one kind for each scheme of URL. storage.c has checked keys and
// conditions, and keeps every Str and string of a call until its on_done; a kind copies only what
// `open` is given.
#pragma once

#include "common/storage/storage.h"

typedef struct StorageKind {
    const char *scheme;                                                        // "file://"
    void *(*open)(uv_loop_t *loop, const StorageOptions *options, Error *err); // NULL: CONFIG
    void (*put)(void *kind, const StoragePut *put, StorageDone on_done, void *ctx);
    void (*get)(
        void *kind, Str key, uint64_t offset, uint64_t len, StoragePiece on_piece,
        StorageDone on_done, void *ctx);
    void (*head)(void *kind, Str key, StorageDone on_done, void *ctx);
    void (*list)(void *kind, Str prefix, StorageEntry on_entry, StorageDone on_done, void *ctx);
    void (*delete)(void *kind, Str key, const char *version, StorageDone on_done, void *ctx);
    // Ends open calls, then frees; on_closed may come from within the call.
    void (*close)(void *kind, void (*on_closed)(void *ctx), void *ctx);
} StorageKind;

extern const StorageKind storage_file, storage_s3;

// ---- storage_key.c ----

bool storage_prefix_check(Str prefix, Error *err); // "" and "log/STA" are fine too
bool storage_key_byte(char c);                     // one that a key may have, but '/'
