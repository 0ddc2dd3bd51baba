// SPDX-License-Identifier: Apache-2.0
// The folder of epoch keys (STENTOR_EPOCH_KEYS_DIR): "<id>.epoch" per key, wrapped by the master
// key, and `current`, which holds the id of the one that wraps. It lies outside of Postgres and of
// Postgres's backups: a key destroyed here is destroyed everywhere. All programs that open data
// keys read it, one writes (common/keywork). Each change is fsynced, and whole or not made. It
// blocks, for the time of a few small files.
#pragma once

#include "common/codec/epoch_keys.h"

typedef struct EpochFolder EpochFolder;

// What is there: the keys are held by `master` from now on, and read again by master_epochs_refresh
// when the folder has changed. Borrows `master`; both live until epoch_folder_close. ERROR_CONFIG
// names the folder or file that cannot be read or opened. A folder without a key is fine: the
// master key wraps until the first one is made.
EpochFolder *epoch_folder_open(const char *path, MasterKey *master, Error *err);
void epoch_folder_close(EpochFolder *folder); // NULL-safe

// A new key, which wraps nothing before epoch_folder_use. ERROR_TRANSIENT: the disk.
bool epoch_folder_make(
    EpochFolder *folder, uint32_t number, int64_t made_s, EpochInfo *ret, Error *err);
bool epoch_folder_use(EpochFolder *folder, const EpochInfo *epoch, Error *err);
// Wraps again, by the current master key, the files that another one has wrapped. *ret_count: so
// many.
bool epoch_folder_rewrap(EpochFolder *folder, size_t *ret_count, Error *err);
// Overwritten, fsynced, unlinked, the folder fsynced. One that is not there counts as destroyed.
// ERROR_CONFIG: it is the current one.
bool epoch_folder_destroy(EpochFolder *folder, const uint8_t id[KEY_ID_LEN], Error *err);
