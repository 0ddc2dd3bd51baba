// SPDX-License-Identifier: Apache-2.0
// What was folded, as statements on find.*: one for the entries, one where a day has no partition
// yet, one that says how fresh they are.
#pragma once

#include "common/db/db.h"
#include "common/find/find_fold.h"

enum { FIND_DAYS_AHEAD = 2 };

// The days that are known to have a partition: [since_us, until_us).
typedef struct FindDays {
    int64_t since_us, until_us;
    int64_t asked_since_us, asked_until_us; // in the transaction that is under way
} FindDays;

void find_sql_write(FindFold *fold, FindDays *days, int64_t now_us, DbTxn *txn);
void find_days_committed(FindDays *days);
void find_days_forget(FindDays *days); // it was not committed, or another one may have dropped days
// All that STATUS had until then is in the entries, which are folded up to `position`. The result
// has one row; none: the position was taken back (stentor rebuild find).
void find_sql_progress(int64_t as_of_us, uint64_t position, DbTxn *txn);
