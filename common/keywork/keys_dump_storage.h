// SPDX-License-Identifier: Apache-2.0
// Dumps of the keys in object storage: keys-dumps/keys-<time>.dump. An object counts once it was
// read back. Blocking.
#pragma once

#include "common/keywork/keys_dump.h"
#include "common/storage/storage_wait.h"

enum { KEYS_DUMP_KEY_SIZE = KEYS_DUMP_NAME_SIZE + 16 };

// The file at `path`, a whole dump, as an object of its name. One of the same bytes that is there
// counts. PERMANENT: another one has the name; it stays. Kinds else as storage_put's.
bool keys_dump_store(StorageWait *storage, const char *path, int64_t taken_us, Error *err);
// The time of the newest; 0: there is none.
bool keys_dump_newest_stored(StorageWait *storage, int64_t *ret_us, Error *err);
// Puts the object of that time at `path`, which is replaced. CONFIG: there is none, or the disk.
bool keys_dump_fetch(StorageWait *storage, int64_t taken_us, const char *path, Error *err);
// Deletes those that are older, each by its version, but never the newest.
bool keys_dump_trim_stored(StorageWait *storage, int64_t before_us, Error *err);
void keys_dump_key(int64_t taken_us, char out[KEYS_DUMP_KEY_SIZE]);
