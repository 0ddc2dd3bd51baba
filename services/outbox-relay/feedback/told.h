// SPDX-License-Identifier: Apache-2.0
// Told: what STATUS says of the relay's letters, and what ingest's dead letters say of commands
// that it refused, folded until it is written. Of one notification only what ranks highest is kept;
// the database keeps the same rule, so order and repetition do not matter. Ids of others are passed
// over there. Pure: no loop, no clock.
#pragma once

#include "common/bus/jetstream/bus.h"
#include "common/outbox/sql/relay_sql.h"

typedef enum ToldMoment { TOLD_RETRYING, TOLD_SENT, TOLD_FAILED, TOLD_COUNT } ToldMoment;

const char *told_name(ToldMoment moment); // "retrying" ...

typedef struct ToldWord {
    Str notification_id;
    ToldMoment moment;
    int32_t rank;     // as relay_sql.h wants it
    int32_t attempts; // that have failed so far
    Str reason;
    int64_t at_us;
} ToldWord;

typedef struct Told Told;

Told *told_new(void);
void told_free(Told *told);
// Events that say nothing to a row are passed over, and so are unreadable ones: the archiver buries
// them. The arena must live until told_clear.
void told_fold(Told *told, const BusMessage *message, Arena *arena);
// One statement for each moment that was heard of; 0 words: none. `aside`: by RelaySql.told_aside,
// without a look at the application's table.
void told_write(Told *told, const RelaySql *sql, bool aside, DbTxn *txn);
// Of a committed transaction that told_write has filled: letters that moved to each moment.
void told_counts(const Told *told, DbTxn *txn, size_t ret_counts[TOLD_COUNT]);
const ToldWord *told_words(const Told *told, size_t *ret_count);
void told_clear(Told *told);
