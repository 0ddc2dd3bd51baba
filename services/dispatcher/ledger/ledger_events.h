// SPDX-License-Identifier: Apache-2.0
// Statements of dispatcher.callback_events: what vendors said within a week, and the mail that a
// vendor's own id belongs to.
#pragma once

#include "services/dispatcher/ledger/ledger.h"

typedef struct LedgerEvent {
    int64_t at_us; // when it happened at the vendor
    Str event_id;  // of its status
    Str tenant;
    uint64_t sequence;      // of its message in SETTLE
    Str notification_id;    // empty: it names none
    Str vendor, message_id; // of the mail, when it names no notification
} LedgerEvent;

// Notes events that are published already. count: 1..LEDGER_BATCH_MAX.
void ledger_add_noted(DbTxn *txn, const LedgerEvent *events, size_t count);

// Finds the notification of each, notes those that are found, and says which came before.
int ledger_add_late(DbTxn *txn, const LedgerEvent *events, size_t count);
typedef struct LedgerLate {
    size_t index;        // of the event
    Str notification_id; // empty: not found
    bool repeated;       // another message of SETTLE brought it before
} LedgerLate;
LedgerLate ledger_late(const PGresult *res, size_t n); // n below db_rows()
