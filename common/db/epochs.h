// SPDX-License-Identifier: Apache-2.0
// The table keys.epochs: which epoch keys wrap data keys of this database, without the keys. A
// program compares it with what STENTOR_EPOCH_KEYS_DIR holds before it works, so that a lost
// folder, or one of another installation, is noticed at the start and by name.
#pragma once

#include "common/codec/epoch_keys.h"
#include "common/db/db.h"

typedef struct EpochRow {
    uint32_t number;
    uint8_t id[KEY_ID_LEN];
    int64_t opened_us;
    int64_t emptied_us; // 0: data keys may still be wrapped by it
    bool open;          // new data keys are wrapped by it
} EpochRow;

// Those that are not destroyed, the oldest first.
typedef struct EpochRows {
    EpochRow rows[EPOCH_KEYS_MAX];
    size_t count;
} EpochRows;

// Every one that is not emptied must be held. ERROR_CONFIG names the first that is not, and what to
// do.
bool epochs_check(const EpochRows *epochs, const MasterKey *master, Error *err);

// From the loop; epochs is valid during the call. Kinds of err as master_keys_read.
typedef void (*EpochsRead)(void *ctx, const EpochRows *epochs, const Error *err);
void epochs_read(DbPool *pool, EpochsRead done, void *ctx);
bool epochs_load(PGconn *pg, EpochRows *ret, Error *err); // blocking

// The gate (keys.gate): closed while this database lacks erasures that were done before it was
// restored. A program that holds keys asks at its start. reason is valid during the call, empty:
// open. Kinds of err as master_keys_read.
typedef void (*GateRead)(void *ctx, Str reason, const Error *err);
void gate_read(DbPool *pool, GateRead done, void *ctx);
