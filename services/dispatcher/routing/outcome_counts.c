// SPDX-License-Identifier: Apache-2.0
#include "services/dispatcher/routing/outcome_counts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/map.h"
#include "common/vendor/vendor_api.h"

enum { NAME_SIZE = 128, COMPARED_MAX = 512 };

static const DbStatement ADD = {
    "outcomes_add",
    "INSERT INTO dispatcher.vendor_outcomes AS o"
    " SELECT date_trunc('minute', now()), w.* FROM unnest($1::text[], $2::text[], $3::int4[],"
    " $4::int4[], $5::int4[], $6::int4[])"
    " AS w(owner, vendor, accepted, delivered, failed, ended) ORDER BY owner, vendor"
    " ON CONFLICT (minute, owner, vendor) DO UPDATE SET accepted = o.accepted + excluded.accepted,"
    " delivered = o.delivered + excluded.delivered, failed = o.failed + excluded.failed,"
    " ended = o.ended + excluded.ended"};

static const DbStatement DROP = {
    "outcomes_drop",
    "DELETE FROM dispatcher.vendor_outcomes WHERE minute < now() - interval '1 day'"};

// $1: DELIVERY_WITHIN_S, $2: DELIVERY_WINDOW_S.
static const DbStatement READ = {
    "outcomes_read",
    "SELECT owner, vendor,"
    " coalesce(sum(delivered) FILTER (WHERE age <= $2), 0)::int8,"
    " coalesce(sum(failed) FILTER (WHERE age <= $2), 0)::int8,"
    " coalesce(sum(accepted) FILTER (WHERE age > $1 AND age <= $1 + $2), 0)::int8,"
    " coalesce(sum(delivered + failed + ended) FILTER (WHERE age <= $1 + $2), 0)::int8,"
    " (sum(delivered) > 0)::int::int8"
    " FROM (SELECT *, extract(epoch FROM now() - minute)::int8 AS age"
    "  FROM dispatcher.vendor_outcomes WHERE minute > now() - interval '6 hours') o"
    " GROUP BY owner, vendor ORDER BY owner, vendor LIMIT 512"};

typedef struct Entry {
    char owner[NAME_SIZE / 2], vendor[NAME_SIZE / 2];
    int64_t counts[REPORT_KINDS]; // not yet added
    int64_t on_way[REPORT_KINDS]; // in the statement that runs
    int64_t poor_at_us;           // of clock_mono_us(); when this process saw it first, else
} Entry;

struct OutcomeCounts {
    DbPool *pool;
    Map *entries; // "<owner>/<vendor>" -> Entry
    int64_t due_us;
    bool running;
    OutcomesCompared on_compared;
    void *ctx;
};

OutcomeCounts *outcome_counts_new(DbPool *pool, OutcomesCompared on_compared, void *ctx)
{
    OutcomeCounts *counts = xcalloc(1, sizeof *counts);
    counts->pool = pool;
    counts->entries = map_new(free);
    counts->on_compared = on_compared;
    counts->ctx = ctx;
    return counts;
}

void outcome_counts_free(OutcomeCounts *counts)
{
    if (counts != NULL) {
        map_free(counts->entries);
        free(counts);
    }
}

// ---- counting ----

// NULL: too many, or too long a name.
static Entry *entry_of(OutcomeCounts *counts, Str owner, Str vendor)
{
    char name[NAME_SIZE];
    int used = snprintf(name, sizeof name, STR_FMT "/" STR_FMT, STR_ARG(owner), STR_ARG(vendor));
    if (used <= 0 || (size_t)used >= sizeof name) {
        return NULL;
    }
    Str at = {name, (size_t)used};
    Entry *entry = map_get(counts->entries, at);
    if (entry != NULL || map_count(counts->entries) >= OUTCOME_COUNTS_MAX) {
        return entry;
    }
    entry = xcalloc(1, sizeof *entry);
    if (!str_to_c(owner, entry->owner, sizeof entry->owner) ||
        !str_to_c(vendor, entry->vendor, sizeof entry->vendor)) {
        free(entry);
        return NULL;
    }
    entry->poor_at_us = clock_mono_us();
    map_put(counts->entries, at, entry);
    return entry;
}

void outcome_counts_note(OutcomeCounts *counts, Str owner, Str vendor, VendorReport kind)
{
    Entry *entry = entry_of(counts, owner, vendor);
    if (entry != NULL) {
        entry->counts[kind]++;
    }
}

// ---- comparing ----

static DeliveryCount read_count(const PGresult *rows, int row)
{
    return (DeliveryCount){
        .delivered = db_get_int(rows, row, 2),
        .failed = db_get_int(rows, row, 3),
        .due = db_get_int(rows, row, 4),
        .reported = db_get_int(rows, row, 5),
        .reports = db_get_int(rows, row, 6) != 0,
    };
}

static void tell(OutcomeCounts *counts, const PGresult *rows, int row, bool poor, int percent)
{
    Entry *entry = entry_of(counts, db_get_text(rows, row, 0), db_get_text(rows, row, 1));
    int64_t now_us = clock_mono_us();
    if (entry != NULL) {
        entry->poor_at_us = poor ? now_us : entry->poor_at_us;
        counts->on_compared(
            counts->ctx, str_from(entry->owner), str_from(entry->vendor), poor, percent,
            now_us - entry->poor_at_us);
    }
}

// The vendors of one channel with each other.
static void compare(OutcomeCounts *counts, const PGresult *rows, Channel channel)
{
    DeliveryCount found[COMPARED_MAX];
    int row_of[COMPARED_MAX];
    bool poor[COMPARED_MAX];
    size_t count = 0;
    for (int row = 0; row < db_rows(rows) && count < COMPARED_MAX; row++) {
        const VendorApi *api = vendor_find(db_get_text(rows, row, 1));
        if (api != NULL && api->channel == channel) {
            found[count] = read_count(rows, row);
            row_of[count++] = row;
        }
    }
    delivery_judge(found, count, poor);
    for (size_t i = 0; i < count; i++) {
        tell(counts, rows, row_of[i], poor[i], delivery_poor_percent(&found[i]));
    }
}

static void settle_added(const OutcomeCounts *counts, bool added)
{
    Str name;
    void *value;
    for (size_t i = 0; map_next(counts->entries, &i, &name, &value);) {
        Entry *entry = value;
        for (size_t kind = 0; kind < REPORT_KINDS; kind++) {
            entry->counts[kind] += added ? 0 : entry->on_way[kind];
            entry->on_way[kind] = 0;
        }
    }
}

static void on_added(void *ctx, DbTxn *txn, const Error *err)
{
    OutcomeCounts *counts = ctx;
    counts->running = false;
    settle_added(counts, err == NULL);
    if (err == NULL) {
        for (Channel channel = CHANNEL_EMAIL; channel < CHANNEL_COUNT; channel++) {
            compare(counts, db_txn_result(txn, 2), channel);
        }
    } else if (err->kind != ERROR_CANCELLED) {
        LOG(LOG_WARN, "outcomes of vendors were not counted; trying again", log_error(err));
    }
}

static void push_counts(DbParams *p, const OutcomeCounts *counts)
{
    DbArray *owners = db_array(p, DB_TEXT);
    DbArray *vendors = db_array(p, DB_TEXT);
    DbArray *columns[REPORT_KINDS];
    for (size_t kind = 0; kind < REPORT_KINDS; kind++) {
        columns[kind] = db_array(p, DB_I32);
    }
    Str name;
    void *value;
    for (size_t i = 0; map_next(counts->entries, &i, &name, &value);) {
        Entry *entry = value;
        int64_t all = 0;
        for (size_t kind = 0; kind < REPORT_KINDS; kind++) {
            all += entry->counts[kind];
        }
        if (all == 0) {
            continue;
        }
        db_push_text(owners, str_from(entry->owner));
        db_push_text(vendors, str_from(entry->vendor));
        for (size_t kind = 0; kind < REPORT_KINDS; kind++) {
            db_push_int(columns[kind], entry->counts[kind]);
            entry->on_way[kind] = entry->counts[kind];
            entry->counts[kind] = 0;
        }
    }
}

void outcome_counts_tick(OutcomeCounts *counts, int64_t now_us)
{
    if (counts->running || now_us < counts->due_us || map_count(counts->entries) == 0) {
        return;
    }
    counts->due_us = now_us + DELIVERY_COMPARE_S * INT64_C(1000000);
    counts->running = true;
    DbTxn *txn = db_txn_new(counts->pool);
    push_counts(db_txn_add(txn, &ADD, NULL), counts);
    (void)db_txn_add(txn, &DROP, NULL);
    DbParams *p = db_txn_add(txn, &READ, NULL);
    db_i64(p, DELIVERY_WITHIN_S);
    db_i64(p, DELIVERY_WINDOW_S);
    db_txn_submit(txn, on_added, counts);
}
