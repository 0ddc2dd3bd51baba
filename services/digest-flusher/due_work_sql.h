// SPDX-License-Identifier: Apache-2.0
// The statements on digest_flusher.due_work: arriving work is inserted, due work is claimed under a
// lease, published work is deleted. A batch each; rows of all tenants go through the functions of
// the schema.
#pragma once

#include "common/db/db.h"
#include "services/digest-flusher/work.h"

enum { DUE_WORK_CLAIM_MAX = 500 };

// Columns of a claim's rows.
enum {
    CLAIM_WORK_ID,
    CLAIM_DUE_AT,
    CLAIM_SUBJECT,
    CLAIM_EVENT_ID,
    CLAIM_PAYLOAD,
    CLAIM_STATUS, // NULL: the payload is published; else a status event with this status and the
                  // next columns
    CLAIM_REASON_CODE,
    CLAIM_DETAIL,
    CLAIM_WINDOW_ID,
};

// Stores a batch of all kinds, in this order: cancellations, items of digests (digest_sql.h), work
// that waits for its time. Repeated work changes nothing, even if it was published already. Work
// that a stored cancellation ends is due at once, as `suppressed`.
void due_work_insert(DbTxn *txn, const DueWork *const *work, size_t count);

// Result 0: up to DUE_WORK_CLAIM_MAX due rows that no other replica holds, each once. Result 1: one
// row, the next due time that is in the future (NULL: none).
void due_work_claim(DbTxn *txn, int64_t lease_ms);

void due_work_delete(DbTxn *txn, const Str *work_ids, size_t count);

// Result 0: one row: the number of waiting rows, and the earliest due time (NULL: none). Counts all
// rows.
void due_work_backlog(DbTxn *txn);

// Result 0: streams, each with the sequence up to which every projection has read it.
void due_work_projected(DbTxn *txn);
