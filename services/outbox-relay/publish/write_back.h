// SPDX-License-Identifier: Apache-2.0
// WriteBack: writes the outcome of a batch into the table. Stored rows are marked, others given
// back, rows that do not fit rejected; the claim is released with the last of them. If the table
// rejects the change of a row (a trigger, a constraint), the whole transaction fails: the batch is
// halved until that row is isolated. It, and rows that the application has locked, are retried in
// another pass after a pause; a row that fails in several passes is put aside. If one row after the
// other fails, the table is at fault, and the rest of the pass is not taken apart.
#pragma once

#include "common/outbox/sql/relay_sql.h"
#include "services/outbox-relay/publish/post.h"
#include "services/outbox-relay/row/row.h"

typedef struct WriteBack {
    const RelaySql *sql;
    Str claim_id;
    const Row *rows;
    Post *posts;
    size_t *list; // rows of this pass, in their order
    size_t count; // of list
    size_t *late; // rows of the next one
    size_t late_count;
    uint8_t *tries;  // passes in which the table rejected it, for each row
    size_t from, to; // of list: the rows of the next transaction
    size_t width;    // rows in one transaction: halved by a rejection, doubled by a success
    int refusals;    // one after the other, without a success between them
    int index;       // of `mark` in the last transaction; -1: not in it
    bool aside;      // the one row of this range cannot be changed
    bool keep;       // the claim is not released: a row of it is stuck
    bool trouble;    // the table rejects one row after the other
} WriteBack;

typedef enum WriteBackStep {
    WRITE_BACK_WRITE, // write_back_write, now
    WRITE_BACK_PAUSE, // the same after a pause: rows are locked or rejected
    WRITE_BACK_DONE,
} WriteBackStep;

typedef struct WriteBackCounts {
    size_t marked;
    size_t refused;
    size_t left;
} WriteBackCounts;

void write_back_init(
    WriteBack *back, const RelaySql *sql, Str claim_id, const Row *rows, Post *posts, size_t count,
    Arena *arena);
void write_back_write(WriteBack *back, DbTxn *txn);
// Call it after the commit: moves on.
WriteBackCounts write_back_take(WriteBack *back, DbTxn *txn);
// Call it after a failure. true: one row is at fault (PERMANENT); go on with write_back_step.
// false: retry the same.
bool write_back_narrow(WriteBack *back, const Error *err);
// The next step. WRITE_BACK_PAUSE: another pass has started; `trouble` is from the last one.
WriteBackStep write_back_step(WriteBack *back);
