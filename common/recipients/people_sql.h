// SPDX-License-Identifier: Apache-2.0
// What was folded, as statements on people.*: six at most, whatever the number of people. Each may
// be repeated: a row gives way to an event of its own sequence or a later one.
#pragma once

#include "common/db/db.h"
#include "common/recipients/people_fold.h"

// First in a transaction on people.*, whose statements are all look-ups by key: they are planned
// for the tables as they are now, and never as scans. A plan from when the tables were small, or
// believed to be, reads all of a tenant's rows for each (measured: over ten seconds with 1,500
// people). Planning costs some 0.3 ms.
void people_sql_replan(DbTxn *txn);

// lost_tail: the stream had lost what was folded before (projector_tails_lost), and this is the
// first flush after that.
void people_sql_write(const PeopleFold *fold, bool lost_tail, DbTxn *txn);
