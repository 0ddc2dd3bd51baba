// SPDX-License-Identifier: Apache-2.0
// Feedback: statuses of the relay's requests and ingest's dead letters of rejected commands, folded
// until they are written. Of one notification only the entry with the highest rank is kept; the
// database applies the same rule, so order and repetition do not matter. The database ignores the
// ids of other senders. Pure: no loop, no clock.
#pragma once

#include "common/bus/jetstream/bus.h"
#include "common/outbox/sql/relay_sql.h"

typedef enum FeedbackMoment {
    FEEDBACK_RETRYING,
    FEEDBACK_SENT,
    FEEDBACK_FAILED,
    FEEDBACK_COUNT
} FeedbackMoment;

const char *feedback_name(FeedbackMoment moment); // "retrying" ...

typedef struct FeedbackEntry {
    Str notification_id;
    FeedbackMoment moment;
    int32_t rank;     // see RelaySql.feedback
    int32_t attempts; // that have failed so far
    Str reason;
    int64_t at_us;
} FeedbackEntry;

typedef struct Feedback Feedback;

Feedback *feedback_new(void);
void feedback_free(Feedback *feedback);
// Ignores events without a moment, and unreadable ones: the archiver makes dead letters of them.
// The arena must live until feedback_clear.
void feedback_fold(Feedback *feedback, const BusMessage *message, Arena *arena);
// Adds one statement for each moment that has entries. `aside`: RelaySql.feedback_aside, which does
// not touch the application's table.
void feedback_write(Feedback *feedback, const RelaySql *sql, bool aside, DbTxn *txn);
// After the commit of a transaction that feedback_write has filled: requests that moved to each
// moment.
void feedback_counts(const Feedback *feedback, DbTxn *txn, size_t ret_counts[FEEDBACK_COUNT]);
const FeedbackEntry *feedback_entries(const Feedback *feedback, size_t *ret_count);
void feedback_clear(Feedback *feedback);
