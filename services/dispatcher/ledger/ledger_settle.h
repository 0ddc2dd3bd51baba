// SPDX-License-Identifier: Apache-2.0
// The send ledger once more: what a vendor's callback proves about rows whose outcome is unknown,
// and how many of those are open.
//
// Open is what may have left us without the ledger's knowing: a claim, and any row with an
// unknown_count that is not 'sent': parked, deferred or failed after a try without an answer. The
// callback does not say which attempt it speaks of, so it settles one row of its notification: the
// latest open one, and none when the notification has a row that is 'sent'.
#pragma once

#include "services/dispatcher/ledger/ledger.h"

typedef struct LedgerProof {
    int64_t created_at_us; // the time in the notification's ULID
    Str notification_id;
    Str tenant;
    Str event_id;  // goes into settled_by; by it a repeat is known
    int64_t at_us; // when the vendor saw it
} LedgerProof;

typedef struct LedgerVendor {
    const char *name; // who must have had the mail, for rows that do not say
    Str mail_domain;  // of its Message-ID
} LedgerVendor;

// Adds the statement for count (1..LEDGER_BATCH_MAX) proofs. What was ordinarily sent costs one
// look-up each and changes nothing.
int ledger_add_settle(
    DbTxn *txn, const LedgerProof *const *proofs, size_t count, const LedgerVendor *vendor);

typedef struct LedgerSettled {
    size_t index; // of the proof
    bool again;   // it was settled by this proof before: a repeat after a crash
    int32_t attempt;
    LedgerRow row; // 'sent'; or 'claimed': the claim's lease lives, and the proof is noted on it
} LedgerSettled;
LedgerSettled ledger_settled(const PGresult *res, size_t n); // n below db_rows()

// Adds the count of open unknowns over all tenants.
int ledger_add_unknown_open(DbTxn *txn);
typedef struct LedgerOpen {
    int64_t claimed; // the lease has ended and there is no outcome
    int64_t parked;
} LedgerOpen;
LedgerOpen ledger_unknown_open(const PGresult *res);
