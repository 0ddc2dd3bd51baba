// SPDX-License-Identifier: Apache-2.0
// What was folded, as statements on feed.*: at most six a round, whatever the number of events.
// Each changes items, and their counters by what these items did; each may be repeated.
#pragma once

#include "common/db/db.h"
#include "common/feed/feed_fold.h"

// reports: statuses for the application go into feed.statuses; a rebuild reports nothing again.
void feed_sql_write(const FeedFold *fold, bool reports, DbTxn *txn);
