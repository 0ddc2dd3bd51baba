// SPDX-License-Identifier: Apache-2.0
// WriteBack: what became of a published batch, written back: stored rows marked, the others given
// back, those that do not fit refused, the claim released with the last of them. A row that its
// table refuses to change (a trigger, a constraint) fails a whole transaction: then the batch is
// halved until that row stands alone. It, and rows that the application holds a lock on, come again
// in another pass after a pause; a row that was refused in several passes is put aside. When one
// row after the other is refused it is not the rows: what is left of the pass is not taken apart.
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
    uint8_t *tries;  // passes in which a row was refused, for each row
    size_t from, to; // of list: what the next transaction is about
    size_t width;    // rows in one transaction: halved by a refusal, doubled by a success
    int refusals;    // one by one, without a success between them
    int index;       // of `mark` in the last transaction; -1: not in it
    bool aside;      // the one row of this range cannot be changed
    bool keep;       // the claim is not released: a row of it is stuck
    bool trouble;    // the table refuses one row after the other
} WriteBack;

typedef enum WriteBackStep {
    WRITE_BACK_WRITE, // write_back_write, now
    WRITE_BACK_PAUSE, // the same after a pause: rows are held or refused
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
// The transaction is committed: moves on.
WriteBackCounts write_back_take(WriteBack *back, DbTxn *txn);
// It failed. true: for one row's sake (PERMANENT); go on with write_back_step. false: the same
// again is worth a try.
bool write_back_narrow(WriteBack *back, const Error *err);
// What comes next. WRITE_BACK_PAUSE: another pass has begun; `trouble` is what the last one has
// found.
WriteBackStep write_back_step(WriteBack *back);
