// SPDX-License-Identifier: Apache-2.0
// Marks: what became of a published batch, written back in one transaction: stored rows marked,
// the others given back, those that do not fit refused, the claim released. A row that its table
// refuses to change (a trigger, a constraint) fails the whole transaction: then the batch is halved
// until that row stands alone, and only it is put aside.
#pragma once

#include "services/outbox-relay/post.h"
#include "services/outbox-relay/relay_sql.h"
#include "services/outbox-relay/row.h"

typedef struct Marks {
    const RelaySql *sql;
    Str claim_id;
    const Row *rows;
    Post *posts;
    size_t count;
    size_t from, to; // what the next transaction is about
    bool aside;      // the one row of this range cannot be changed
    bool keep;       // the claim is not released: a row of it is stuck
} Marks;

typedef struct MarkCounts {
    size_t marked;
    size_t refused;
    size_t left;
} MarkCounts;

void marks_init(
    Marks *marks, const RelaySql *sql, Str claim_id, const Row *rows, Post *posts, size_t count);
void marks_write(const Marks *marks, DbTxn *txn);
// The transaction is committed: moves on. Done when `from` is `count`.
MarkCounts marks_take(Marks *marks);
// It failed. true: for one row's sake (PERMANENT); go on with marks_write, as long as `from` is not
// `count`. false: the same again is worth a try.
bool marks_narrow(Marks *marks, const Error *err);
