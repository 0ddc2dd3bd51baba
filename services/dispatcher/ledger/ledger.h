// SPDX-License-Identifier: Apache-2.0
// The send ledger's statements (dispatcher.ledger): claim before, outcome after, a batch at a time.
// No decisions here: the dispatcher decides what a conflict means. Law: a row moves claimed -> sent
// | deferred | failed | parked once, and only its owner moves it; a row whose outcome is then
// unknown may move once more, to sent, when a vendor's callback settles it (ledger_settle.h), and a
// call from sent to deferred, when it was not answered (ledger_calls.h). Every
// statement finds its rows through the primary key (ON CONFLICT), so no plan can turn into a scan
// while the table grows.
//
// Columns with more than one use:
// - owner '': released; its process gave it back before anything was sent (lease_until -infinity)
// - vendor: at which the mail is, from the claim on. NULL in an outcome: decided here, nothing was
//   sent; code is our reason_code, reply its text. NULL in a claim: it leads to such an outcome, or
//   it is of a release that knew "smtp" only
// - rung, due_at, sent: of a call, as of one that is deferred, for the case that it is not answered
// - rung, failed: NULL when the vendor refused for good, or when a policy decided here
#pragma once

#include "common/db/db.h"

typedef enum LedgerState {
    LEDGER_NONE, // not visible: another process was inserting it
    LEDGER_CLAIMED,
    LEDGER_SENT,
    LEDGER_DEFERRED,
    LEDGER_FAILED,
    LEDGER_PARKED,
} LedgerState;

const char *ledger_state_name(LedgerState state);

typedef struct LedgerKey {
    int64_t created_at_us; // the time in the notification's ULID
    Str notification_id;
    int32_t attempt;
    Str tenant;
    // Its claim first looks for an earlier attempt that was settled as sent, or is a call that is
    // not known to be without an answer.
    bool retry;
} LedgerKey;

// Where a claim's mail goes.
typedef struct LedgerPlace {
    Str vendor;     // empty: nowhere, its outcome is decided already
    Str credential; // its name; empty: the vendor has none
    Str key;        // vendor_key; empty: the vendor knows none
} LedgerPlace;

typedef struct LedgerRow {
    LedgerState state;
    int64_t claimed_at_us;
    int64_t finished_at_us;
    int64_t due_at_us; // deferred; sent, of a call: when another one follows if it was not answered
    int32_t rung;      // -1: NULL
    int32_t unknown_count;
    Str vendor, vendor_message_id, code, enhanced, reply; // empty: NULL
    Str credential, vendor_key;                           // of the claim; not written by outcomes
    Str reply_class; // "bad_address" ...: what the answer was, where `code` does not say it
    // Deferred: what the next attempt is for. "fallback": another vendor. "settle": this one may
    // have been sent. "asked": so the vendor said nothing of use about the one before. "absent": it
    // said that it never had it. Empty: the same as this one.
    Str next_step;
    uint32_t segments;   // that the vendor counts; 0: NULL
    int64_t cost_micros; // 0: NULL
    Str currency;
} LedgerRow;

typedef struct LedgerClaim {
    Str owner;
    int64_t lease_ms;
    int64_t now_us;
} LedgerClaim;

enum { LEDGER_BATCH_MAX = 1024 };

// Adds the statement to `txn` for count (1..LEDGER_BATCH_MAX) keys; db_txn_tenant() is called for
// their tenants.
int ledger_add_claim(
    DbTxn *txn, const LedgerKey *const *keys, const LedgerPlace *const *places, size_t count,
    const LedgerClaim *claim);
// A key that is not claimed now: its index, its row, and who holds it for how long.
typedef struct LedgerConflict {
    size_t index;
    int32_t attempt; // the key's, or the earlier one that was settled as sent
    LedgerRow row;   // slices point into the result
    Str owner;
    int64_t wait_ms; // claimed: until its lease ends; 0: it has ended
} LedgerConflict;
size_t ledger_conflicts(const PGresult *res);
LedgerConflict ledger_conflict(const PGresult *res, size_t n);

// Takes over claims whose lease has ended or that are the owner's own. Those of another owner count
// as unknown, and only those are taken that are at `places`; the others go there.
int ledger_add_take_over(
    DbTxn *txn, const LedgerKey *const *keys, const LedgerPlace *const *places, size_t count,
    const LedgerClaim *claim);
// Moves claims of the owner to other places: their mails were surely not sent. Not those that a
// callback has proved to be sent meanwhile.
int ledger_add_move(
    DbTxn *txn, const LedgerKey *const *keys, const LedgerPlace *const *places, size_t count,
    Str owner);
// Parks claims whose lease has ended. Results of all three: ledger_hit().
int ledger_add_park(
    DbTxn *txn, const LedgerKey *const *keys, size_t count, const LedgerClaim *claim);

// Outcomes of claims that are still the owner's.
int ledger_add_outcomes(
    DbTxn *txn, const LedgerKey *const *keys, const LedgerRow *const *rows, size_t count,
    Str owner);
// Releases claims whose mail was surely not sent.
int ledger_add_release(DbTxn *txn, const LedgerKey *const *keys, size_t count, Str owner);
int ledger_add_renew(
    DbTxn *txn, const LedgerKey *const *keys, size_t count, const LedgerClaim *claim);

// The n-th row that such a statement changed: its key and its unknown_count.
typedef struct LedgerHit {
    Str notification_id;
    int32_t attempt;
    int32_t unknown_count;
    bool settled; // a proof had been noted on the claim: the row is now sent, whatever the
                  // statement set
} LedgerHit;
LedgerHit ledger_hit(const PGresult *res, size_t n);

// Creates the monthly tables around now; for start-up and once a day.
void ledger_add_partitions(DbTxn *txn);
