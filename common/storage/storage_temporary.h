// SPDX-License-Identifier: Apache-2.0
// Files of .tmp: whole and synced, not yet an object. Blocking.
#pragma once

#include "common/storage/storage_folder.h"

// A small text as a synced file; false: errno says why, and nothing is left.
bool storage_temporary_text(
    const StorageFolder *folder, Str text, char temporary[STORAGE_PATH_SIZE]);
