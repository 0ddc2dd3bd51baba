// SPDX-License-Identifier: Apache-2.0
// Claim: the transaction that starts a batch, and the handling of a row that makes it fail.
#pragma once

#include "services/outbox-relay/publish/batch.h"

// lock, then adopt; or lock, begin, edge, claim. Returns the index of the result with the rows
// (CLAIM_*); the edge's result, if there is one, is the one before it.
int claim_write(const BatchContext *context, const BatchQuery *query, DbTxn *txn);
// Puts the first row that this query would claim aside, with the reason. `done` is called from the
// loop; key empty: there was no row.
void claim_put_aside(
    BatchContext *context, const BatchQuery *query, const char *reason,
    void (*done)(void *ctx, Str key, const Error *err), void *ctx);
