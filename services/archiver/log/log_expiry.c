// SPDX-License-Identifier: Apache-2.0
#include "services/archiver/log/log_expiry.h"

#include <stdlib.h>
#include <string.h>

#include "common/archive/clocks.h"
#include "common/base/clock.h"
#include "common/base/crash.h"
#include "common/base/log.h"
#include "services/archiver/log/log_owner.h"

enum { PASS_MAX = 50, PERIODS = 10, OBJECT_KEY_SIZE = 256, VERSIONS_MAX = 100 };

static const int64_t pause_min_us = 1000000;
static const int64_t pause_max_us = INT64_C(600) * 1000000;

struct LogExpiry {
    LogExpiryOptions options;
    Metric *deleted;
    LogOwner *owner;
    int64_t next_us; // monotonic
    bool busy;
    char keys[PASS_MAX][OBJECT_KEY_SIZE];
    char versions[PASS_MAX][STORAGE_VERSION_SIZE];
    size_t count, at;
    int deletions;              // of the object at `at`
    size_t left;                // objects of this pass that the bucket does not delete
    Error refusal;              // by the clocks, or the first of those
    void (*on_idle)(void *ctx); // set: stopping
    void *ctx;
};

// clang-format off
static const DbStatement find_statement = {
    .name = "log_expired",
    .sql = "SELECT s.key, coalesce(s.version, '') FROM archive.segments s"
           " JOIN unnest($1::text[], $2::text[], $3::timestamptz[]) AS e (stream, class, older)"
           " ON s.stream = e.stream AND (e.class IS NULL OR s.class = e.class)"
           " WHERE s.deleted_at IS NULL AND s.max_at < e.older AND archive.segment_held(s.tenants) IS NULL"
           // Postgres has rows that only these segments can make again.
           " AND (e.class IS NULL OR NOT EXISTS (SELECT FROM archive.units u WHERE u.kind = 'notifications' AND u.class = s.class"
           "      AND u.starts_at <= s.max_at AND u.state NOT IN ('removed', 'restored', 'expired')))"
           " ORDER BY s.max_at LIMIT $4::int4"};
static const DbStatement mark_statement = {
    .name = "log_segments_deleted",
    .sql = "SELECT archive.segments_deleted($1::text[])"};
static const DbStatement clocks_statement = {.name = "log_clocks", .sql = clocks_sql};
static const DbStatement note_statement = {.name = "log_note_clocks", .sql = "SELECT archive.note_clocks($1::text)"};
// clang-format on

LogExpiry *log_expiry_new(const LogExpiryOptions *options)
{
    LogExpiry *expiry = xcalloc(1, sizeof *expiry);
    expiry->options = *options;
    expiry->owner = log_owner_new(options->pool, options->storage);
    expiry->deleted = metrics_counter(
        options->metrics, "stentor_archiver_log_expired_total", "",
        "Segments deleted at the end of their time");
    return expiry;
}

void log_expiry_free(LogExpiry *expiry)
{
    if (expiry != NULL) {
        log_owner_free(expiry->owner);
        free(expiry);
    }
}

// Content that is kept for three seconds (a test) is looked at each second, for 90 days every ten
// minutes.
static int64_t pause_of(const LogKept *kept)
{
    const int64_t spans_us[] = {kept->content_us, kept->callbacks_us};
    int64_t pause_us = pause_max_us;
    for (size_t i = 0; i < sizeof spans_us / sizeof spans_us[0]; i++) {
        if (spans_us[i] > 0 && spans_us[i] / PERIODS < pause_us) {
            pause_us = spans_us[i] / PERIODS;
        }
    }
    return pause_us < pause_min_us ? pause_min_us : pause_us;
}

static void end_pass(LogExpiry *expiry, int64_t wait_us)
{
    expiry->busy = false;
    expiry->next_us += wait_us;
    if (expiry->on_idle != NULL) {
        expiry->on_idle(expiry->ctx);
    }
}

static void fail_pass(LogExpiry *expiry, const Error *err)
{
    LOG(LOG_WARN, "segments past their time were not deleted, trying again", log_error(err));
    end_pass(expiry, pause_of(&expiry->options.rules.kept));
}

// ---- 4: their rows ----

static void finish_mark(LogExpiry *expiry, const Error *err)
{
    if (err != NULL) {
        fail_pass(expiry, err);
        return;
    }
    metric_add(expiry->deleted, (double)expiry->count);
    if (expiry->left > 0) {
        LOG(LOG_WARN,
            "the bucket does not delete some segments past their time; the others are gone",
            log_int("count", (int64_t)expiry->left), log_error(&expiry->refusal));
    }
    LOG(LOG_INFO, "segments past their time are deleted", log_int("count", (int64_t)expiry->count));
    bool full = expiry->count + expiry->left == PASS_MAX;
    end_pass(expiry, full ? 0 : pause_of(&expiry->options.rules.kept));
}

static void on_marked(void *ctx, DbTxn *txn, const Error *err)
{
    (void)txn;
    finish_mark(ctx, err);
}

static void mark(LogExpiry *expiry)
{
    CRASH_POINT("archiver.segments_deleted");
    DbTxn *txn = db_txn_new(expiry->options.pool);
    db_null(db_txn_add(txn, &note_statement, NULL)); // they agreed
    DbArray *keys = db_array(db_txn_add(txn, &mark_statement, NULL), DB_TEXT);
    for (size_t i = 0; i < expiry->count; i++) {
        db_push_text(keys, str_from(expiry->keys[i]));
    }
    db_txn_submit(txn, on_marked, expiry);
}

// ---- 3: the objects ----

// A version at a time, until HEAD shows none: an object that was damaged, and put again, has two.

static void delete_next(LogExpiry *expiry);

// An object under a lock stays, and holds up no other. What may be over in a moment ends the pass.
static void take_failure(LogExpiry *expiry, const Error *err)
{
    if (err->kind == ERROR_TRANSIENT) {
        fail_pass(expiry, err);
        return;
    }
    if (expiry->left++ == 0) {
        expiry->refusal = *err;
    }
    expiry->count--;
    memcpy(expiry->keys[expiry->at], expiry->keys[expiry->count], OBJECT_KEY_SIZE);
    memcpy(expiry->versions[expiry->at], expiry->versions[expiry->count], STORAGE_VERSION_SIZE);
    expiry->deletions = 0;
    delete_next(expiry);
}

static void finish_head(
    LogExpiry *expiry, StorageOutcome outcome, const StorageInfo *info, const Error *err)
{
    if (outcome == STORAGE_FAILED) {
        take_failure(expiry, err);
    } else if (outcome == STORAGE_ABSENT) {
        expiry->at++;
        expiry->deletions = 0;
        delete_next(expiry);
    } else if (expiry->deletions >= VERSIONS_MAX) {
        Error stays;
        error_set(
            &stays, ERROR_PERMANENT,
            "object '%.140s' is still there after %d deletions (HINT: a lock of the bucket)",
            expiry->keys[expiry->at], expiry->deletions);
        take_failure(expiry, &stays);
    } else {
        memcpy(expiry->versions[expiry->at], info->version, STORAGE_VERSION_SIZE);
        delete_next(expiry);
    }
}

static void on_head(void *ctx, StorageOutcome outcome, const StorageInfo *info, const Error *err)
{
    finish_head(ctx, outcome, info, err);
}

static void finish_delete(LogExpiry *expiry, StorageOutcome outcome, const Error *err)
{
    if (outcome == STORAGE_FAILED) {
        take_failure(expiry, err);
        return;
    }
    expiry->deletions++;
    storage_head(expiry->options.storage, str_from(expiry->keys[expiry->at]), on_head, expiry);
}

static void on_deleted(void *ctx, StorageOutcome outcome, const StorageInfo *info, const Error *err)
{
    (void)info;
    finish_delete(ctx, outcome, err);
}

static void delete_next(LogExpiry *expiry)
{
    if (expiry->count == 0) {
        fail_pass(expiry, &expiry->refusal);
    } else if (expiry->at == expiry->count) {
        mark(expiry);
    } else {
        storage_delete(
            expiry->options.storage, str_from(expiry->keys[expiry->at]),
            expiry->versions[expiry->at], on_deleted, expiry);
    }
}

// ---- 2: may this database? ----

static void on_owner(void *ctx, const Error *err)
{
    LogExpiry *expiry = ctx;
    if (err != NULL) {
        fail_pass(expiry, err);
    } else {
        delete_next(expiry);
    }
}

// ---- 1: which, and may the clocks be trusted? ----

static void on_refused(void *ctx, DbTxn *txn, const Error *err)
{
    (void)txn;
    (void)err;
    LogExpiry *expiry = ctx;
    fail_pass(expiry, &expiry->refusal);
}

static bool check_clocks(LogExpiry *expiry, const PGresult *rows)
{
    char stream[64];
    (void)str_to_c(db_get_text(rows, 0, 2), stream, sizeof stream);
    ClockReadings readings = {
        .host_us = clock_now_us(),
        .postgres_us = db_get_int(rows, 0, 0),
        .stored_us = db_get_int(rows, 0, 1),
        .stream = stream};
    return clocks_agree(&readings, &expiry->refusal);
}

static void note_refusal(LogExpiry *expiry)
{
    DbTxn *txn = db_txn_new(expiry->options.pool);
    db_text(db_txn_add(txn, &note_statement, NULL), str_from(expiry->refusal.text));
    db_txn_submit(txn, on_refused, expiry);
}

static void finish_find(LogExpiry *expiry, DbTxn *txn, const Error *err)
{
    if (err != NULL) {
        fail_pass(expiry, err);
        return;
    }
    const PGresult *rows = db_txn_result(txn, 1);
    expiry->count = (size_t)db_rows(rows);
    expiry->at = 0;
    expiry->left = 0;
    expiry->deletions = 0;
    for (size_t i = 0; i < expiry->count; i++) {
        Str key = db_get_text(rows, (int)i, 0);
        (void)str_to_c(key, expiry->keys[i], sizeof expiry->keys[i]);
        Str version = db_get_text(rows, (int)i, 1);
        (void)str_to_c(version, expiry->versions[i], sizeof expiry->versions[i]);
    }
    if (expiry->count == 0) {
        end_pass(expiry, pause_of(&expiry->options.rules.kept));
    } else if (!check_clocks(expiry, db_txn_result(txn, 0))) {
        note_refusal(expiry);
    } else {
        log_owner_ask(expiry->owner, on_owner, expiry);
    }
}

static void on_found(void *ctx, DbTxn *txn, const Error *err)
{
    finish_find(ctx, txn, err);
}

static void add_ends(const LogEndRules *rules, int64_t now_us, DbParams *params)
{
    LogEnd ends[LOG_ENDS_MAX];
    size_t count = log_ends(rules, now_us, ends);
    DbArray *names = db_array(params, DB_TEXT);
    DbArray *classes = db_array(params, DB_TEXT);
    DbArray *older = db_array(params, DB_TIME);
    for (size_t i = 0; i < count; i++) {
        db_push_text(names, str_from(ends[i].stream));
        db_push_optional(classes, str_of(&ends[i].class_code, ends[i].class_code != 0 ? 1 : 0));
        db_push_time(older, ends[i].older_us);
    }
}

void log_expiry_look(LogExpiry *expiry, int64_t now_us, int64_t mono_us)
{
    if (expiry->busy || expiry->on_idle != NULL || mono_us < expiry->next_us ||
        !db_pool_ready(expiry->options.pool)) {
        return;
    }
    expiry->busy = true;
    expiry->next_us = mono_us;
    DbTxn *txn = db_txn_new(expiry->options.pool);
    (void)db_txn_add(txn, &clocks_statement, NULL);
    DbParams *params = db_txn_add(txn, &find_statement, NULL);
    add_ends(&expiry->options.rules, now_us, params);
    db_i32(params, PASS_MAX);
    db_txn_submit(txn, on_found, expiry);
}

void log_expiry_stop(LogExpiry *expiry, void (*on_idle)(void *ctx), void *ctx)
{
    expiry->on_idle = on_idle;
    expiry->ctx = ctx;
    if (!expiry->busy) {
        on_idle(ctx);
    }
}
