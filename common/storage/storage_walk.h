// SPDX-License-Identifier: Apache-2.0
// The objects of a folder in the order of their keys, one after the other: at any time it holds the
// names of one folder of each level. Blocking.
#pragma once

#include "common/storage/storage_folder.h"

typedef struct StorageWalk StorageWalk;

StorageWalk *storage_walk_new(const StorageFolder *folder, Str prefix); // copies prefix
void storage_walk_free(StorageWalk *walk);                              // NULL-safe
// false: the end, or *err. An object that is deleted meanwhile may be missing. key is valid until
// the next call; *ret is without the installation.
bool storage_walk_next(StorageWalk *walk, Str *ret_key, StorageInfo *ret, Error *err);
