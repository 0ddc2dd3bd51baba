// SPDX-License-Identifier: Apache-2.0
// Object storage on a loop: five verbs, of a folder (file://) or a bucket (s3://). An object is
// there whole or not at all, and durable when its PUT is done.
//
// Law: one thread. Callbacks come from the loop, never from within the call that they answer; each
// call ends in exactly one on_done. A key is a name that is not used for other content by whoever
// archives (it holds the content's hash); conditions are for the few that do change.
#pragma once

#include <stdint.h>
#include <uv.h>

#include "common/base/error.h"
#include "common/base/str.h"
#include "common/codec/hash.h"

typedef struct Storage Storage;

typedef struct StorageOptions { // strings are copied; NULL or "": none
    const char *url;            // file:///folder, s3://bucket/prefix?endpoint=...&region=...
    const char *key_id, *secret, *session_token, *vendor;
    bool blocks; // the loop serves nothing else: file work may run on it, without a thread
    bool foreign; // others write there: no symbolic link below the folder is followed
} StorageOptions;

enum {
    STORAGE_KEY_MAX = 900,
    STORAGE_ETAG_SIZE = 128,
    STORAGE_VERSION_SIZE = 128,
    STORAGE_OWNER_SIZE = 40,
    STORAGE_CLASS_SIZE = 40,
};

typedef struct StorageInfo {
    uint64_t bytes; // of the whole object
    int64_t modified_us;
    char etag[STORAGE_ETAG_SIZE];
    char version[STORAGE_VERSION_SIZE];    // "": the storage keeps no versions
    char installation[STORAGE_OWNER_SIZE]; // "": none, or not asked (LIST)
} StorageInfo;

typedef enum StorageOutcome {
    STORAGE_DONE,
    STORAGE_ABSENT,       // GET, HEAD: no such object. A DELETE of what is absent is DONE
    STORAGE_PRECONDITION, // PUT: there is one, or with another ETag; nothing was changed
    STORAGE_FAILED,       // the error's kind: TRANSIENT (tried again until patience ended), CONFIG
                          // (credentials, bucket, rights), PERMANENT, CANCELLED (storage_free)
} StorageOutcome;

typedef enum StorageCondition {
    STORAGE_ALWAYS,
    STORAGE_IF_ABSENT,
    STORAGE_IF_ETAG
} StorageCondition;

typedef struct StoragePut {
    Str key; // relative to the URL; a-z A-Z 0-9 - _ . = / ; no part is empty or begins with '.'
    int fd;  // its first len bytes, by pread; not read when `bytes` is given
    const void *bytes;
    uint64_t len;
    uint8_t sha256[SHA256_LEN]; // other bytes are refused (PERMANENT), by the server where it can
    StorageCondition condition;
    const char *etag;          // IF_ETAG
    const char *installation;  // NULL, or whose it is: comes back from HEAD
    const char *storage_class; // NULL: the bucket's default; a folder has none
} StoragePut;

// info is there only when DONE: of a PUT, GET or HEAD, NULL of the others. err only when FAILED.
typedef void (*StorageDone)(
    void *ctx, StorageOutcome outcome, const StorageInfo *info, const Error *err);
// false: enough, the call ends DONE.
typedef bool (*StoragePiece)(void *ctx, const void *bytes, size_t len);
typedef void (*StorageEntry)(void *ctx, Str key, const StorageInfo *info);

// NULL: CONFIG. Connects to nothing and makes no folder yet.
Storage *storage_new(uv_loop_t *loop, const StorageOptions *options, Error *err);
// Open calls end first: FAILED with CANCELLED, or as what they have become. NULL-safe: then
// on_freed is not called.
void storage_free(Storage *storage, void (*on_freed)(void *ctx), void *ctx);

// fd and bytes stay the caller's until on_done; `put` and its strings need not. A PUT IF_ABSENT
// that the storage itself tried again and that meets its own object ends DONE.
void storage_put(Storage *storage, const StoragePut *put, StorageDone on_done, void *ctx);
// len 0: to the end. What lies beyond the end is not there: fewer pieces, or none, and DONE.
void storage_get(
    Storage *storage, Str key, uint64_t offset, uint64_t len, StoragePiece on_piece,
    StorageDone on_done, void *ctx);
void storage_head(Storage *storage, Str key, StorageDone on_done, void *ctx);
// Every key that begins with prefix ("": all), ascending by key.
void storage_list(
    Storage *storage, Str prefix, StorageEntry on_entry, StorageDone on_done, void *ctx);
// version NULL or "": the newest.
void storage_delete(Storage *storage, Str key, const char *version, StorageDone on_done, void *ctx);

// PERMANENT, with the key and what is wrong with it.
bool storage_key_check(Str key, Error *err);
const char *storage_outcome_name(StorageOutcome outcome); // "done" ...
