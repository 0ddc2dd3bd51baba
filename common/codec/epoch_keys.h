// SPDX-License-Identifier: Apache-2.0
// Epoch keys: random keys, one a week, that wrap data keys while they last. The master key wraps
// each; its file lies outside of Postgres and of Postgres's backups (common/epochs). Once an epoch
// key is destroyed, what it has wrapped opens nothing, in whatever backup it lies. A program's
// epoch keys hang on its MasterKey. Pure: files are read and written by common/epochs.
#pragma once

#include "common/codec/master_key.h"

enum {
    EPOCH_KEYS_MAX = 64,   // at once; far above the two or three of a week
    EPOCH_FILE_SIZE = 320, // a printed one, with NUL
};

typedef struct EpochInfo {
    uint32_t number;        // 1, 2, ... in the order in which they were made
    int64_t made_s;         // Unix time
    uint8_t id[KEY_ID_LEN]; // derived from the key, so no id can be given to the wrong one
} EpochInfo;

// A new random key as the text of its file, wrapped by the current master key.
void epoch_key_make(
    MasterKey *master, uint32_t number, int64_t made_s, char out[EPOCH_FILE_SIZE], EpochInfo *ret);
// The same key wrapped by the current master key: after a rotation of that one. ERROR_CONFIG: no
// master key of the file opens it.
bool epoch_key_rewrap(MasterKey *master, Str text, char out[EPOCH_FILE_SIZE], Error *err);
// What a file says of itself, unopened. ERROR_CONFIG: it is none.
bool epoch_key_describe(Str text, EpochInfo *ret, uint8_t ret_master_id[KEY_ID_LEN], Error *err);

// What the program holds from now on: one text per file, and the id of the current one (empty:
// there is none, the master key wraps). Keys that are held already stay, those without a file are
// forgotten. On an error nothing changes: ERROR_CONFIG names the file by its id.
bool master_epochs_set(MasterKey *master, const Str *texts, size_t count, Str current, Error *err);
size_t master_epoch_count(const MasterKey *master);
const EpochInfo *master_epoch_info(const MasterKey *master, size_t index);
const EpochInfo *master_epoch_current(const MasterKey *master); // NULL: the master key wraps
const EpochInfo *master_epoch_find(const MasterKey *master, const uint8_t id[KEY_ID_LEN]);

// How the program learns of a new one: asked before data keys are made, and when a data key names
// an epoch key that is not held. It calls master_epochs_set when something has changed.
typedef bool (*EpochsRefresh)(void *ctx, MasterKey *master, Error *err);
void master_epochs_source(MasterKey *master, EpochsRefresh refresh, void *ctx);
bool master_epochs_refresh(MasterKey *master, Error *err); // true without a source
