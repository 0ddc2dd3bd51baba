// SPDX-License-Identifier: Apache-2.0
#include "services/dispatcher/budget/budgets.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/map.h"
#include "common/routing/budget.h"

enum {
    FLUSH_MS = 1, // keys that want a lease within it share a statement
    LEASES_MAX = 256,
    NAME_SIZE = BUDGETS_KEY_MAX + 8,
    THROTTLE_MIN_MS = 1000,
    THROTTLE_MAX_MS = 86400000,
    LOG_EVERY_US = 60000000,
};

// GCRA with n tokens at once, one HOT update a key; keys in order, so that no two statements wait
// for each other.
static const DbStatement LEASE = {
    "budget_lease", "INSERT INTO dispatcher.budget AS b (key, tat)"
                    " SELECT w.key, now() + w.want_us * interval '1 microsecond'"
                    " FROM unnest($1::text[], $2::int8[]) AS w(key, want_us) ORDER BY w.key"
                    " ON CONFLICT (key) DO UPDATE SET tat = greatest(b.tat, now())"
                    " + (excluded.tat - now()) / dispatcher.budget_pace(b.penalty, b.penalty_until)"
                    " WHERE coalesce(b.penalty_until, '-infinity') <= now()"
                    " AND greatest(b.tat, now()) + (excluded.tat - now()) / "
                    "dispatcher.budget_pace(b.penalty, b.penalty_until)"
                    " - now() <= greatest($3::int8 * interval '1 microsecond',"
                    " (excluded.tat - now()) / dispatcher.budget_pace(b.penalty, b.penalty_until))"
                    " RETURNING b.key, (extract(epoch FROM b.tat - now()) * 1000000)::int8,"
                    " (dispatcher.budget_pace(b.penalty, b.penalty_until) * 1000000)::int8"};

// Several dispatchers that are refused at the same moment slow down once.
static const DbStatement THROTTLE = {
    "budget_throttle",
    "INSERT INTO dispatcher.budget AS b (key, tat, penalty, penalty_until)"
    " VALUES ($1::text, now(), 0.7, now() + $2::int8 * interval '1 millisecond')"
    " ON CONFLICT (key) DO UPDATE SET"
    " penalty = CASE WHEN b.penalty_until > now() THEN b.penalty"
    " ELSE greatest(0.05, dispatcher.budget_pace(b.penalty, b.penalty_until) * 0.7) END,"
    " penalty_until = greatest(b.penalty_until, excluded.penalty_until)"};

// One row: 0 when it is taken, else how long it is another's. None: another takes it just now.
static const DbStatement CLAIM = {
    "budget_claim",
    "WITH mine AS (INSERT INTO dispatcher.budget AS b (key, tat)"
    " VALUES ($1::text, now() + $2::int8 * interval '1 microsecond')"
    " ON CONFLICT (key) DO UPDATE SET tat = excluded.tat"
    " WHERE b.tat <= now() OR b.tat > now() + $3::int8 * interval '1 microsecond'"
    " RETURNING 0::int8 AS left_us)"
    " SELECT left_us FROM mine UNION ALL"
    " SELECT greatest(1, (extract(epoch FROM tat - now()) * 1000000)::int8)"
    " FROM dispatcher.budget WHERE key = $1::text AND NOT EXISTS (SELECT FROM mine)"};

static const DbStatement BEAT = {
    "budget_beat",
    "WITH gone AS (DELETE FROM dispatcher.budget WHERE key LIKE 'replica|%' AND key <> 'replica|' "
    "|| $1::text"
    " AND tat < now() - interval '1 hour'),"
    " own AS (INSERT INTO dispatcher.budget AS b (key, tat) VALUES ('replica|' || $1::text, now())"
    " ON CONFLICT (key) DO UPDATE SET tat = excluded.tat)"
    " SELECT 1 + count(*) FROM dispatcher.budget WHERE key LIKE 'replica|%' AND key <> 'replica|' "
    "|| $1::text"
    " AND tat > now() - $2::int8 * interval '1 second'"};

typedef struct Entry {
    Budget budget;
    char name[NAME_SIZE]; // "<key>|s", "<key>|day"
    int64_t limit;        // of its seconds or days
    bool daily, wanted;
    int64_t throttled_us; // when it was last said to Postgres
} Entry;

struct Budgets {
    DbPool *pool;
    const char *instance;
    Map *entries; // name -> Entry
    Entry *wanted[LEASES_MAX];
    size_t wanted_count;
    uint32_t replicas;
    uv_timer_t flush, beat;
    size_t open; // statements and handles
    bool closing;
    int64_t logged_us;
    DbSchemaCopy *copy; // NULL: the statements are for their own schema
    size_t keys_max;
    Metric *leased, *refused, *throttled;
    void (*on_closed)(void *ctx);
    void *closed_ctx;
};

// ---- life ----

static void end_one(Budgets *budgets)
{
    budgets->open--;
    if (budgets->open == 0 && budgets->closing) {
        budgets->on_closed(budgets->closed_ctx);
    }
}

static DbTxn *new_txn(const Budgets *budgets)
{
    DbTxn *txn = db_txn_new(budgets->pool);
    if (budgets->copy != NULL) {
        db_txn_schema(txn, budgets->copy);
    }
    return txn;
}

static void note_failure(Budgets *budgets, const Error *err)
{
    int64_t now_us = clock_mono_us();
    if (err->kind != ERROR_CANCELLED && now_us - budgets->logged_us >= LOG_EVERY_US) {
        budgets->logged_us = now_us;
        LOG(LOG_WARN, "limits of vendors cannot be leased; their mails wait", log_error(err));
    }
}

// ---- leases ----

typedef struct Lease {
    Budgets *budgets;
    size_t count;
    Entry *entries[LEASES_MAX];
    uint32_t tokens[LEASES_MAX];
} Lease;

static void take_row(Lease *lease, const PGresult *rows, int row, int64_t now_us)
{
    Str name = db_get_text(rows, row, 0);
    int64_t ends_in_us = db_get_int(rows, row, 1);
    int64_t pace = db_get_int(rows, row, 2);
    for (size_t i = 0; i < lease->count; i++) {
        Entry *entry = lease->entries[i];
        if (entry != NULL && str_eq(str_from(entry->name), name)) {
            double span_us = budget_span_s(&entry->budget, lease->tokens[i]) * 1e12 / (double)pace;
            budget_granted(
                &entry->budget, lease->tokens[i], ends_in_us - (int64_t)span_us, (int64_t)span_us,
                now_us);
            metric_add(lease->budgets->leased, lease->tokens[i]);
            lease->entries[i] = NULL;
        }
    }
}

static void on_leased(void *ctx, DbTxn *txn, const Error *err)
{
    Lease *lease = ctx;
    Budgets *budgets = lease->budgets;
    int64_t now_us = clock_mono_us();
    const PGresult *rows = err == NULL ? db_txn_result(txn, 0) : NULL;
    for (int row = 0; rows != NULL && row < db_rows(rows); row++) {
        take_row(lease, rows, row, now_us);
    }
    for (size_t i = 0; i < lease->count; i++) {
        if (lease->entries[i] != NULL) {
            budget_refused(&lease->entries[i]->budget, now_us);
            metric_add(budgets->refused, 1);
        }
    }
    if (err != NULL) {
        note_failure(budgets, err);
    }
    end_one(budgets);
}

static void grant_alone(Budgets *budgets, Entry *entry, uint32_t tokens, int64_t now_us)
{
    double span_us = budget_span_s(&entry->budget, tokens) * 1e6 * budgets->replicas;
    budget_granted(&entry->budget, tokens, 0, (int64_t)span_us, now_us);
}

// Those of one horizon: the limit of how far ahead is the statement's.
static void flush_kind(Budgets *budgets, bool daily, int64_t now_us)
{
    DbTxn *txn = new_txn(budgets);
    Lease *lease = arena_zalloc(db_txn_arena(txn), sizeof *lease);
    DbParams *p = db_txn_add(txn, &LEASE, NULL);
    DbArray *names = db_array(p, DB_TEXT);
    DbArray *spans = db_array(p, DB_I64);
    lease->budgets = budgets;
    for (size_t i = 0; i < budgets->wanted_count; i++) {
        Entry *entry = budgets->wanted[i];
        uint32_t tokens = budget_wants(&entry->budget, budgets->replicas, now_us);
        if (entry->daily != daily || tokens == 0) {
            continue;
        }
        if (!daily && entry->limit > BUDGET_PER_S_MAX) {
            grant_alone(budgets, entry, tokens, now_us);
            continue;
        }
        budget_asked(&entry->budget, now_us);
        db_push_text(names, str_from(entry->name));
        db_push_int(spans, (int64_t)(budget_span_s(&entry->budget, tokens) * 1e6));
        lease->entries[lease->count] = entry;
        lease->tokens[lease->count++] = tokens;
    }
    db_i64(p, (daily ? BUDGET_DAY_HORIZON_S : BUDGET_HORIZON_S) * INT64_C(1000000));
    if (lease->count == 0) {
        db_txn_abandon(txn);
        return;
    }
    budgets->open++;
    db_txn_submit(txn, on_leased, lease);
}

static void on_flush_due(uv_timer_t *timer)
{
    Budgets *budgets = timer->data;
    int64_t now_us = clock_mono_us();
    flush_kind(budgets, false, now_us);
    flush_kind(budgets, true, now_us);
    for (size_t i = 0; i < budgets->wanted_count; i++) {
        budgets->wanted[i]->wanted = false;
    }
    budgets->wanted_count = 0;
}

static void want_lease(Budgets *budgets, Entry *entry, int64_t now_us)
{
    if (entry->wanted || budgets->closing || budgets->wanted_count == LEASES_MAX ||
        budget_wants(&entry->budget, budgets->replicas, now_us) == 0) {
        return;
    }
    entry->wanted = true;
    budgets->wanted[budgets->wanted_count++] = entry;
    if (!uv_is_active((uv_handle_t *)&budgets->flush)) {
        (void)uv_timer_start(&budgets->flush, on_flush_due, FLUSH_MS, 0);
    }
}

// ---- taking ----

static void on_beat_due(uv_timer_t *timer);

// From the first limit on: without one, who else is there does not matter.
static void watch_replicas(Budgets *budgets)
{
    if (!uv_is_active((uv_handle_t *)&budgets->beat) && !budgets->closing) {
        (void)uv_timer_start(&budgets->beat, on_beat_due, 0, BUDGETS_BEAT_MS);
    }
}

// NULL: too many keys, or too long a one.
static Entry *entry_of(Budgets *budgets, Str key, bool daily, int64_t limit)
{
    char name[NAME_SIZE];
    int used = snprintf(name, sizeof name, STR_FMT "|%s", STR_ARG(key), daily ? "day" : "s");
    if (key.len > BUDGETS_KEY_MAX || used <= 0) {
        return NULL;
    }
    Str at = {name, (size_t)used};
    Entry *entry = map_get(budgets->entries, at);
    if (entry == NULL && map_count(budgets->entries) < budgets->keys_max) {
        entry = xcalloc(1, sizeof *entry);
        (void)str_to_c(at, entry->name, sizeof entry->name);
        map_put(budgets->entries, at, entry);
        watch_replicas(budgets);
    }
    if (entry != NULL && entry->limit != limit) { // new, or another limit now
        entry->limit = limit;
        entry->daily = daily;
        budget_init(&entry->budget, daily ? 0 : limit, daily ? limit : 0);
    }
    return entry;
}

bool budgets_take(
    Budgets *budgets, Str key, int64_t per_s, int64_t per_day, Priority lane, uint32_t waiting,
    int64_t *ret_at_us)
{
    int64_t now_us = clock_mono_us();
    Entry *second = per_s > 0 ? entry_of(budgets, key, false, per_s) : NULL;
    Entry *day = per_day > 0 ? entry_of(budgets, key, true, per_day) : NULL;
    if ((per_s > 0 && second == NULL) || (per_day > 0 && day == NULL)) {
        *ret_at_us = now_us + 1000000; // a limit that cannot be kept: nothing goes
        return false;
    }
    bool first = second == NULL || budget_take(&second->budget, lane, waiting, now_us, ret_at_us);
    bool both =
        first && (day == NULL || budget_take(&day->budget, lane, waiting, now_us, ret_at_us));
    if (first && !both && second != NULL) {
        budget_give_back(&second->budget, lane);
    }
    if (second != NULL) {
        want_lease(budgets, second, now_us);
    }
    if (day != NULL) {
        want_lease(budgets, day, now_us);
    }
    return both;
}

// ---- throttling ----

static void on_throttled(void *ctx, DbTxn *txn, const Error *err)
{
    (void)txn;
    Budgets *budgets = ctx;
    if (err != NULL) {
        note_failure(budgets, err);
    }
    end_one(budgets);
}

void budgets_throttled(Budgets *budgets, Str key, uint32_t retry_after_ms)
{
    char name[NAME_SIZE];
    int64_t now_us = clock_mono_us();
    int64_t wait_ms = retry_after_ms < THROTTLE_MIN_MS   ? THROTTLE_MIN_MS
                      : retry_after_ms > THROTTLE_MAX_MS ? THROTTLE_MAX_MS
                                                         : retry_after_ms;
    int used = snprintf(name, sizeof name, STR_FMT "|s", STR_ARG(key));
    Entry *entry = used > 0 && key.len <= BUDGETS_KEY_MAX
                       ? map_get(budgets->entries, (Str){name, (size_t)used})
                       : NULL;
    if (entry == NULL || budgets->closing) {
        return; // it has no limit per second here that could be lowered
    }
    budget_pause(&entry->budget, now_us + wait_ms * 1000);
    metric_add(budgets->throttled, 1);
    if (entry->throttled_us > 0 && now_us - entry->throttled_us < THROTTLE_MIN_MS * INT64_C(1000)) {
        return;
    }
    entry->throttled_us = now_us;
    DbTxn *txn = new_txn(budgets);
    DbParams *p = db_txn_add(txn, &THROTTLE, NULL);
    db_text(p, str_from(entry->name));
    db_i64(p, wait_ms);
    budgets->open++;
    db_txn_submit(txn, on_throttled, budgets);
}

// ---- a right that one of all dispatchers has ----

typedef struct Right {
    Budgets *budgets;
    void (*on_answer)(void *ctx, bool granted, int64_t again_in_us);
    void *ctx;
} Right;

static void on_right(void *ctx, DbTxn *txn, const Error *err)
{
    const Right *right = ctx;
    Budgets *budgets = right->budgets;
    const PGresult *rows = err == NULL ? db_txn_result(txn, 0) : NULL;
    bool answered = rows != NULL && db_rows(rows) == 1;
    int64_t left_us = answered ? db_get_int(rows, 0, 0) : 0;
    if (err != NULL) {
        note_failure(budgets, err);
    }
    right->on_answer(right->ctx, answered && left_us == 0, left_us);
    end_one(budgets);
}

void budgets_claim(
    Budgets *budgets, Str key, int64_t every_us, int64_t most_us,
    void (*on_answer)(void *ctx, bool granted, int64_t again_in_us), void *ctx)
{
    DbTxn *txn = new_txn(budgets);
    Right *right = arena_zalloc(db_txn_arena(txn), sizeof *right);
    *right = (Right){budgets, on_answer, ctx};
    DbParams *p = db_txn_add(txn, &CLAIM, NULL);
    db_text(p, key);
    db_i64(p, every_us);
    db_i64(p, most_us);
    budgets->open++;
    db_txn_submit(txn, on_right, right);
}

// ---- replicas ----

static void on_beaten(void *ctx, DbTxn *txn, const Error *err)
{
    Budgets *budgets = ctx;
    if (err == NULL) {
        int64_t count = db_get_int(db_txn_result(txn, 0), 0, 0);
        budgets->replicas = count < 1 ? 1 : (uint32_t)count;
    }
    end_one(budgets);
}

static void on_beat_due(uv_timer_t *timer)
{
    Budgets *budgets = timer->data;
    DbTxn *txn = new_txn(budgets);
    DbParams *p = db_txn_add(txn, &BEAT, NULL);
    db_text(p, str_from(budgets->instance));
    db_i64(p, BUDGETS_SEEN_S);
    budgets->open++;
    db_txn_submit(txn, on_beaten, budgets);
}

uint32_t budgets_replicas(const Budgets *budgets)
{
    return budgets->replicas;
}

static Metric *counter(const BudgetsOptions *options, const char *what, const char *help)
{
    char name[96];
    (void)snprintf(name, sizeof name, "%sbudget_%s_total", options->metrics_prefix, what);
    return metrics_counter(options->metrics, name, "", help);
}

Budgets *budgets_new_of(const BudgetsOptions *options)
{
    Budgets *budgets = xcalloc(1, sizeof *budgets);
    budgets->pool = options->pool;
    budgets->instance = options->instance;
    budgets->copy =
        options->schema != NULL ? db_schema_copy_new("dispatcher", options->schema) : NULL;
    budgets->keys_max = options->keys_max > 0 ? options->keys_max : BUDGETS_MAX;
    budgets->entries = map_new(free);
    budgets->replicas = 1;
    budgets->open = 2; // its timers
    budgets->leased = counter(options, "leased", "Tokens leased of shared limits");
    budgets->refused = counter(options, "refused", "Leases that were not given");
    budgets->throttled = counter(options, "throttled", "Answers that it was too much");
    budgets->flush.data = budgets->beat.data = budgets;
    (void)uv_timer_init(db_pool_loop(options->pool), &budgets->flush);
    (void)uv_timer_init(db_pool_loop(options->pool), &budgets->beat);
    return budgets;
}

Budgets *budgets_new(DbPool *pool, const char *instance, Metrics *metrics)
{
    return budgets_new_of(&(BudgetsOptions){
        .pool = pool,
        .instance = instance,
        .metrics = metrics,
        .metrics_prefix = "stentor_dispatcher_",
    });
}

static void on_timer_closed(uv_handle_t *handle)
{
    end_one(handle->data);
}

void budgets_close(Budgets *budgets, void (*on_closed)(void *ctx), void *ctx)
{
    budgets->closing = true;
    budgets->on_closed = on_closed;
    budgets->closed_ctx = ctx;
    uv_close((uv_handle_t *)&budgets->flush, on_timer_closed);
    uv_close((uv_handle_t *)&budgets->beat, on_timer_closed);
}

void budgets_free(Budgets *budgets)
{
    if (budgets != NULL) {
        map_free(budgets->entries);
        db_schema_copy_free(budgets->copy);
        free(budgets);
    }
}
