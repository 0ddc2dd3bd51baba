// SPDX-License-Identifier: Apache-2.0
// Statements of the send ledger for vendors' callbacks: they settle rows whose outcome is unknown,
// and count those that are still open.
//
// Open are rows whose mail may have been sent without the ledger's knowing: a claim, and any row
// with an unknown_count that is not 'sent': parked, deferred or failed after a try without an
// answer.
//
// A callback settles rows of its own vendor only, and none when such a row is 'sent' already. A row
// of the vendor "smtp" is settled by any vendor's callback: the relay may be any vendor's. Few
// callbacks say which attempt they speak of; without it the latest open one is settled. A row at
// another vendor that is 'sent' stays: then both had the mail.
#pragma once

#include "services/dispatcher/ledger/ledger.h"

typedef struct LedgerProof {
    int64_t created_at_us; // the time in the notification's ULID
    Str notification_id;
    Str tenant;
    Str event_id;    // goes into settled_by, so a repeat is recognised
    int64_t at_us;   // when it happened at the vendor
    Str vendor;      // that called back; empty: it settles rows of "smtp" only
    int32_t attempt; // 0: it does not say
    Str message_id;  // the vendor's; empty: not given
} LedgerProof;

typedef struct LedgerVendor {
    const char *name; // the vendor, for rows without one
    Str mail_domain;  // of its Message-ID
} LedgerVendor;

// Adds the statement for count (1..LEDGER_BATCH_MAX) proofs. A mail that was sent normally costs
// one look-up and changes nothing.
int ledger_add_settle(
    DbTxn *txn, const LedgerProof *const *proofs, size_t count, const LedgerVendor *vendor);

typedef struct LedgerSettled {
    size_t index;  // of the proof
    bool repeated; // it was settled by this proof before: a repeat after a crash
    int32_t attempt;
    bool second;   // another attempt is 'sent' too, at another vendor
    LedgerRow row; // 'sent'; or 'claimed': the lease is in force, the proof is noted on it
} LedgerSettled;
LedgerSettled ledger_settled(const PGresult *res, size_t n); // n below db_rows()

// Adds the count of open unknowns over all tenants.
int ledger_add_unknown_open(DbTxn *txn);
typedef struct LedgerOpen {
    int64_t claimed; // the lease has ended and there is no outcome
    int64_t parked;
} LedgerOpen;
LedgerOpen ledger_unknown_open(const PGresult *res);
