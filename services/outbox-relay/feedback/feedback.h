// SPDX-License-Identifier: Apache-2.0
// Feedback: what STATUS says of the relay's requests, and what ingest's dead letters say of
// commands that it refused, folded until it is written. Of one notification only what ranks highest
// is kept; the database keeps the same rule, so order and repetition do not matter. Ids of others
// are passed over there. Pure: no loop, no clock.
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
    int32_t rank;     // as relay_sql.h wants it
    int32_t attempts; // that have failed so far
    Str reason;
    int64_t at_us;
} FeedbackEntry;

typedef struct Feedback Feedback;

Feedback *feedback_new(void);
void feedback_free(Feedback *feedback);
// Events that say nothing to a row are passed over, and so are unreadable ones: the archiver buries
// them. The arena must live until feedback_clear.
void feedback_fold(Feedback *feedback, const BusMessage *message, Arena *arena);
// One statement for each moment that was heard of; 0 words: none. `aside`: by
// RelaySql.feedback_aside, without a look at the application's table.
void feedback_write(Feedback *feedback, const RelaySql *sql, bool aside, DbTxn *txn);
// Of a committed transaction that feedback_write has filled: requests that moved to each moment.
void feedback_counts(const Feedback *feedback, DbTxn *txn, size_t ret_counts[FEEDBACK_COUNT]);
const FeedbackEntry *feedback_entries(const Feedback *feedback, size_t *ret_count);
void feedback_clear(Feedback *feedback);
