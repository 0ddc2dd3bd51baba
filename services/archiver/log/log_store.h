// SPDX-License-Identifier: Apache-2.0
// A segment's file into object storage: put under its content's name, then read back whole and
// compared by SHA-256. One at a time; done again it is the same object.
#pragma once

#include "common/storage/storage.h"
#include "services/archiver/log/log_part.h"

typedef struct LogStore LogStore;

// err NULL: the object is there and has the file's bytes; its version is in the file. From the
// loop.
typedef void (*LogStored)(void *ctx, const Error *err);

// NULL: CONFIG.
LogStore *log_store_new(uv_loop_t *loop, const StorageOptions *options, Error *err);
void log_store_free(LogStore *store, void (*on_freed)(void *ctx), void *ctx); // not a busy one
Storage *log_store_storage(LogStore *store);                                  // lives as long
void log_store_own(LogStore *store, Str installation); // whose the objects are from now on
bool log_store_busy(const LogStore *store);
// Not busy. The file stays open until on_stored.
void log_store_put(LogStore *store, LogFile *file, LogStored on_stored, void *ctx);
