// SPDX-License-Identifier: Apache-2.0
// digest_flusher.due_work as statements: what arrives goes in, what is due is claimed under a
// lease, what was emitted is deleted. A batch each; the rows of all tenants, through the functions
// of the schema.
#pragma once

#include "common/db/db.h"
#include "services/digest-flusher/work.h"

enum { CLOCK_CLAIM_MAX = 500 };

// Columns of a claim's rows.
enum {
    CLAIM_WORK_ID,
    CLAIM_DUE_AT,
    CLAIM_SUBJECT,
    CLAIM_EVENT_ID,
    CLAIM_PAYLOAD,
    CLAIM_STATUS, // NULL: the payload goes out; else this word on STATUS about it, with the rest
    CLAIM_REASON_CODE,
    CLAIM_DETAIL,
    CLAIM_WINDOW_ID,
};

// Takes a batch of all kinds, in this order: cancellations, items of digests (digest_sql.h), work
// that waits for its time. Rows that are there already stay as they are; so does what was emitted
// and can be cancelled. What a known cancellation is about is due at once, as `suppressed`.
void clock_insert(DbTxn *txn, const DueWork *const *work, size_t count);

// Result 0: up to CLOCK_CLAIM_MAX rows that are due and that nobody else holds, each once.
// Result 1: one row, when the next one is due that is not due yet (NULL: none).
void clock_claim(DbTxn *txn, int64_t lease_ms);

void clock_delete(DbTxn *txn, const Str *work_ids, size_t count);

// Result 0: one row, how many wait, and when the first of them is due (NULL: none). Counts every
// row.
void clock_backlog(DbTxn *txn);

// Result 0: stream, and the sequence up to which every projection has read it.
void clock_projected(DbTxn *txn);
