// SPDX-License-Identifier: Apache-2.0
// What was folded, as statements on people.*: six at most, whatever the number of people. Each may
// be repeated: a row gives way to an event of its own sequence or a later one.
#pragma once

#include "common/db/db.h"
#include "services/ingest/people_fold.h"

// lost_tail: the stream had lost what was folded before (projector_tails_lost), and this is the
// first flush after that.
void people_sql_write(const PeopleFold *fold, bool lost_tail, DbTxn *txn);
