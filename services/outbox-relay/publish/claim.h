// SPDX-License-Identifier: Apache-2.0
// Claim: the transaction with which a batch begins, and what is done about a row that makes it
// fail.
#pragma once

#include "services/outbox-relay/publish/batch.h"

// lock, then adopt; or lock, begin, edge, claim. Answers which result has the rows (CLAIM_*); of a
// mapping with an edge that is the one before it.
int claim_write(const BatchContext *context, const BatchQuery *query, DbTxn *txn);
// The row that this query of one row would begin with is refused, with the reason. `done` comes
// from the loop; key empty: there was none.
void claim_put_aside(
    BatchContext *context, const BatchQuery *query, const char *reason,
    void (*done)(void *ctx, Str key, const Error *err), void *ctx);
