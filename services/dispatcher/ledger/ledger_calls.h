// SPDX-License-Identifier: Apache-2.0
// Calls that were taken and, as their vendor reports later, not answered: the row goes from sent to
// deferred, so that the claim of the next call, which waits since this one was taken, finds nothing
// in its way. Law: it happens before the next call is due, or never; the claim decides by the row.
#pragma once

#include "services/dispatcher/ledger/ledger.h"

typedef struct LedgerCall {
    LedgerKey key;
    Str vendor; // that reports it
    Str reason; // "busy", "no_answer"
    Str reply;  // its text
} LedgerCall;

// count: 1..LEDGER_BATCH_MAX.
int ledger_add_unanswered(DbTxn *txn, const LedgerCall *calls, size_t count);
// The index of the n-th call (n below db_rows()) that another one follows, also when it was
// recorded before. Those that are not among them have no other.
size_t ledger_unanswered(const PGresult *res, size_t n);
