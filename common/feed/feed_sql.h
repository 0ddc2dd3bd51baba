// SPDX-License-Identifier: Apache-2.0
// What was folded, as statements on feed.*: at most six a round, whatever the number of events.
// Each changes items, and their counters by what these items did; each may be repeated.
#pragma once

#include "common/db/db.h"
#include "common/feed/feed_fold.h"

// First in a flush behind a loss of the stream's tail (projector_tails_lost): items of what is lost
// give way to what is said now, which has lower sequences.
void feed_sql_forget_tail(const FeedFold *fold, DbTxn *txn);
// reports: statuses for the application go into feed.statuses; a rebuild reports nothing again.
void feed_sql_write(const FeedFold *fold, bool reports, DbTxn *txn);
