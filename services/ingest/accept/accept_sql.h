// SPDX-License-Identifier: Apache-2.0
// The one transaction of a group commit: accept rows and idempotency keys; and the look, after it,
// at the answers of the keys that were there already.
#pragma once

#include "common/bus/events/frames.h"
#include "common/codec/hash.h"
#include "common/db/db.h"

// What is stored as a whole or not at all: a row's requests without a key, or one request with a
// key. Of a row of ingest.accept_log the parts are stored that have no key or a new one.
typedef struct AcceptPart {
    Str tenant;
    size_t row;              // its number in the group
    struct AcceptPart *next; // of the same row, behind this one
    Str ids;                 // "ntf_a,ntf_b"
    Frame *frames;
    size_t frame_count;
    Str events;   // the frames packed, and compressed where the head says so
    bool lowered; // something of it is beyond its tenant's share
    Str scope;    // with key, hash and answer: of a keyed request
    Str key;      // empty: none
    const uint8_t *hash;
    Str answer;
    // read back:
    int64_t accept_id; // of the row; 0: the key was there already, nothing was stored
    Str stored_hash;   // then: what the key holds
    int stored_status;
    Str stored_answer;
} AcceptPart;

// head: of the frames, all parts have the same.
void accept_sql_add(
    DbTxn *txn, const AcceptPart *parts, size_t count, Str head, int64_t accepted_at_us);
// After success: accept_id of each part. Only a part with a key can have none.
bool accept_sql_read(const DbTxn *txn, AcceptPart *parts, size_t count, Error *err);

// Of the parts without accept_id, of which there is one: what their keys hold. Alone in `txn`.
void accept_sql_find(DbTxn *txn, const AcceptPart *parts, size_t count);
// After success; stored_status 0: the key is not there any more. Copied into `arena`.
void accept_sql_found(const DbTxn *txn, AcceptPart *parts, size_t count, Arena *arena);
// For a look by key: the next statements of `txn` plan no sequential scan.
void accept_sql_by_index(DbTxn *txn);
