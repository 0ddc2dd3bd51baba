// SPDX-License-Identifier: Apache-2.0
// The saga's statements. A batch is read by one transaction and written by one.
#pragma once

#include "common/db/db.h"
#include "common/orders/messages.h"
#include "common/orders/order.h"

// Reads the batch's orders (live or archived), which of its messages are consumed,
// and the events that wait for those of its orders that are checked out in it.
void saga_sql_load(DbTxn *txn, const Fold *fold);
// Fills the fold from it. A waiting event of the table that is unreadable is left there.
void saga_sql_loaded(const DbTxn *txn, Fold *fold);

// A row of the outbox.
typedef struct OutRow {
    const Order *order;
    OutMessage message;
    Str body; // sealed, or a Deferred
    Str traceparent;
    Str initiator; // message id of its cause
    const char *withheld;    // why it is never sent; NULL: it is
    int64_t sequence_number; // once it is written; 0: it is not
} OutRow;

// Writes orders whose version is still the one that was read, their inbox and their outbox. The
// slower of two processes writes nothing of an order.
void saga_sql_store(DbTxn *txn, const Fold *fold, const OutRow *rows, size_t count);
// Sets is_lost of the lost orders, and sequence_number of the written rows.
void saga_sql_stored(const DbTxn *txn, Fold *fold, OutRow *rows, size_t count);

void saga_sql_mark_sent(DbTxn *txn, const int64_t *sequence_numbers, size_t count);
void saga_sql_withhold(DbTxn *txn, int64_t sequence_number, Str tenant, const char *why);

// Columns of a claim's rows.
enum {
    CLAIM_SEQUENCE,
    CLAIM_TENANT,
    CLAIM_MESSAGE_ID,
    CLAIM_TYPE,
    CLAIM_CORRELATION,
    CLAIM_SUBJECT,
    CLAIM_BODY,
    CLAIM_HAPPENED,
    CLAIM_SEEN,
    CLAIM_TRACEPARENT,
    CLAIM_ENQUEUED,
};
void saga_sql_claim(DbTxn *txn, int64_t older_than_ms, int64_t lease_ms, int32_t at_most);

// Columns of an overdue wait's rows.
enum {
    OVERDUE_TENANT,
    OVERDUE_CORRELATION,
    OVERDUE_TOKEN,
    OVERDUE_RETRIES,
};
void saga_sql_overdue(DbTxn *txn, int64_t grace_ms, int32_t at_most);

typedef struct SagaKpis {
    int64_t active, stalled, unmatched, backlog;
    int64_t oldest_unsent_us; // 0: all rows are sent
} SagaKpis;
void saga_sql_kpis(DbTxn *txn, int64_t stalled_s);
void saga_sql_kpis_read(const DbTxn *txn, SagaKpis *ret);

typedef struct Ages {
    int64_t outbox_days, inbox_days, archive_days, drop_days;
} Ages;
enum { RETENTION_STEPS = 4 }; // outbox, inbox, archive, drop: as many results, each a count
void saga_sql_retain(DbTxn *txn, const Ages *ages, Str tenant, int32_t at_most);
