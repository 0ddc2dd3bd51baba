// SPDX-License-Identifier: Apache-2.0
// The one transaction of a group commit: accept rows, idempotency keys, and the answers that older
// keys hold.
#pragma once

#include "common/bus/frames.h"
#include "common/codec/hash.h"
#include "common/db/db.h"

// One row of ingest.accept_log: all requests of a tenant without a key, or one request with a key.
typedef struct AcceptRow {
    Str tenant;
    Str ids; // "ntf_a,ntf_b"
    Str first_id;
    Frame *frames;
    size_t frame_count;
    Str events; // the frames packed
    Str scope;  // with key, hash and answer: of a keyed request
    Str key;    // empty: none
    const uint8_t *hash;
    Str answer;
    // read back:
    int64_t accept_id; // 0: the key was there already, nothing was stored
    Str stored_hash;
    int stored_status;
    Str stored_answer;
} AcceptRow;

void accept_sql_add(DbTxn *txn, const AcceptRow *rows, size_t count, int64_t accepted_at_us);
// After success. What is read is copied into `arena`.
bool accept_sql_read(const DbTxn *txn, AcceptRow *rows, size_t count, Arena *arena, Error *err);
