// SPDX-License-Identifier: Apache-2.0
// The folded rows as statements: one for the notifications of a flush, one for its attempts, and
// one for the months of a class that this process has not seen yet. They merge with what is in the
// tables by the rules of fold.h. Rows of a sealed period (archived, or removed for their age) are
// never written to its tables again: Postgres tells them apart, in the same statement.
#pragma once

#include "common/db/db.h"
#include "common/history/fold.h"
#include "common/model/retention/retention.h"

// The statements for one schema: the live one, or the one that a rebuild fills.
enum { HISTORY_SQL_MAX = 12288 };

// Where rows of sealed periods go.
typedef enum HistoryLate {
    HISTORY_LATE_APART,  // to the late tables
    HISTORY_LATE_NOWHERE // a rebuild carries over sealed periods and the late tables as they are
} HistoryLate;

typedef struct HistorySql {
    DbStatement notifications;
    DbStatement attempts;
    DbStatement months;
    char text[3][HISTORY_SQL_MAX];
    char names[3][64];
} HistorySql;

// schema is the program's own constant. *out must live, and stay where it is, as long as the pool
// that its statements are used with.
void history_sql_init(HistorySql *out, const char *schema, HistoryLate late);

// Adds the statements for everything in `fold` and declares its tenants. The rows must live until
// the commit.
void history_write(const HistorySql *sql, const Fold *fold, DbTxn *txn);
// The same in two parts, for two transactions. Each declares the tenants.
void history_write_notifications(const HistorySql *sql, const Fold *fold, DbTxn *txn);
void history_write_attempts(const HistorySql *sql, const Fold *fold, DbTxn *txn);

// Adds stentor.ensure_partitions for both tables and all classes, for the months that hold the two
// times and those between.
void history_ensure_months(const HistorySql *sql, DbTxn *txn, int64_t since_us, int64_t until_us);

// The months whose partitions are known to be there or sealed, so that only a new one costs a
// statement.
enum { HISTORY_MONTHS_MAX = 512 };

typedef struct HistoryMonth {
    int64_t start_us;
    RetentionClass class;
} HistoryMonth;

typedef struct HistoryMonths {
    HistoryMonth at[HISTORY_MONTHS_MAX];
    size_t known; // committed
    size_t asked; // known, and those whose statement is in the current transaction
} HistoryMonths;

// Adds a statement for the months of the rows that are not known, if there is one. Called again
// when a transaction failed.
void history_months_write(
    const HistorySql *sql, HistoryMonths *months, const Fold *fold, DbTxn *txn);
// No row needs a month that is not known.
bool history_months_known(HistoryMonths *months, const Fold *fold);
void history_months_committed(HistoryMonths *months);
// What a lazy commit made may be gone after a crash of Postgres: each month is asked for again.
void history_months_forget(HistoryMonths *months);
