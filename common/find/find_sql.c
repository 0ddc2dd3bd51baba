// SPDX-License-Identifier: Apache-2.0
#include "common/find/find_sql.h"

static const int64_t day_us = INT64_C(86400000000);

// clang-format off
static const DbStatement DAYS = {"find_days", "SELECT find.ensure_days($1::timestamptz, $2::timestamptz)"};
static const DbStatement ENTRIES = {"find_entries",
    "INSERT INTO find.entries (tenant_id, kind, key, created_at, notification_id)"
    " SELECT u.tenant_id, u.kind, u.key, u.created_at, u.notification_id"
    " FROM unnest($1::text[], $2::int2[], $3::int8[], $4::timestamptz[], $5::text[])"
    " AS u (tenant_id, kind, key, created_at, notification_id)"};
static const DbStatement PROGRESS = {"find_progress",
    "INSERT INTO find.progress AS p (projection, as_of) SELECT 'find', $1::timestamptz"
    " WHERE $2::int8 = 0 OR EXISTS (SELECT FROM find.positions q WHERE q.projection = 'find' AND q.sequence >= $2::int8)"
    " ON CONFLICT (projection) DO UPDATE SET as_of = greatest(p.as_of, excluded.as_of) RETURNING 1"};
// clang-format on

static int64_t day_of(int64_t at_us)
{
    return at_us - at_us % day_us;
}

// Tomorrow's day is made today, so that midnight waits for nothing.
static void ensure_days(
    FindDays *days, int64_t first_us, int64_t last_us, int64_t now_us, DbTxn *txn)
{
    int64_t ahead_us = now_us + FIND_DAYS_AHEAD * day_us;
    int64_t since_us = day_of(first_us);
    int64_t until_us = day_of(last_us > now_us + day_us ? last_us : ahead_us) + day_us;
    bool known =
        since_us >= days->since_us && last_us < days->until_us && now_us + day_us < days->until_us;
    if (known) {
        return;
    }
    bool any = days->until_us > 0;
    days->asked_since_us = any && days->since_us < since_us ? days->since_us : since_us;
    days->asked_until_us = days->until_us > until_us ? days->until_us : until_us;
    DbParams *p = db_txn_add(txn, &DAYS, NULL);
    db_time(p, days->asked_since_us);
    db_time(p, days->asked_until_us - 1);
}

static void write_entries(const FindRow *rows, size_t count, DbTxn *txn)
{
    DbParams *p = db_txn_add(txn, &ENTRIES, NULL);
    DbArray *tenant = db_array(p, DB_TEXT);
    DbArray *kind = db_array(p, DB_I16);
    DbArray *key = db_array(p, DB_I64);
    DbArray *created_at = db_array(p, DB_TIME);
    DbArray *id = db_array(p, DB_TEXT);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || !str_eq(rows[i].tenant, rows[i - 1].tenant)) {
            db_txn_tenant(txn, rows[i].tenant);
        }
        db_push_text(tenant, rows[i].tenant);
        db_push_int(kind, rows[i].kind);
        db_push_int(key, rows[i].key);
        db_push_time(created_at, rows[i].created_at_us);
        db_push_text(id, rows[i].id);
    }
}

void find_sql_write(FindFold *fold, FindDays *days, int64_t now_us, DbTxn *txn)
{
    size_t count = 0;
    const FindRow *rows = find_fold_rows(fold, &count);
    int64_t first_us = 0;
    int64_t last_us = 0;
    days->asked_since_us = days->since_us;
    days->asked_until_us = days->until_us;
    if (find_fold_span(fold, &first_us, &last_us)) {
        ensure_days(days, first_us, last_us, now_us, txn);
        write_entries(rows, count, txn);
    }
}

void find_days_committed(FindDays *days)
{
    days->since_us = days->asked_since_us;
    days->until_us = days->asked_until_us;
}

void find_days_forget(FindDays *days)
{
    *days = (FindDays){.since_us = 0};
}

void find_sql_progress(int64_t as_of_us, uint64_t position, DbTxn *txn)
{
    DbParams *p = db_txn_add(txn, &PROGRESS, NULL);
    db_time(p, as_of_us);
    db_i64(p, (int64_t)position);
}
