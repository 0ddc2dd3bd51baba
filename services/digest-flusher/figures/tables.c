// SPDX-License-Identifier: Apache-2.0
#include "services/digest-flusher/figures/tables.h"

#include <stdlib.h>

#include "common/base/log.h"

enum { FIRST_MS = 1000, PERIOD_MS = 60 * 1000 };

// Those that grow with what is sent. A row here is a series from the start on.
static const char *const names[] = {
    "ingest.accept_log",
    "ingest.idempotency_keys",
    "dispatcher.ledger",
    "archiver.notifications",
    "archiver.delivery_attempts",
    "digest_flusher.due_work",
    "digest_flusher.digest_items",
    "order_saga.order_state",
    "order_saga.inbox_state",
    "order_saga.outbox_message",
    "keys.data_keys",
    "people.recipients",
};
enum { NAMES = sizeof names / sizeof *names };

struct Tables {
    DbPool *pool;
    Metric *bytes[NAMES];
    Metric *database, *locks, *deadlocks, *runway;
    uv_timer_t timer;
    bool busy;
    bool stopping;
    void (*on_stopped)(void *ctx);
    void *stopped_ctx;
};

// A partitioned table is the sum of its months, with indexes and values stored out of line (TOAST).
static const DbStatement sizes = {
    .name = "figures_sizes",
    .sql = "SELECT coalesce((SELECT sum(coalesce((SELECT sum(pg_total_relation_size(t.relid))"
           " FROM pg_partition_tree(c.oid) t), pg_total_relation_size(c.oid)))"
           " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
           " WHERE n.nspname || '.' || c.relname = i.name), 0)::int8"
           " FROM unnest($1::text[]) WITH ORDINALITY AS i (name, place) ORDER BY i.place",
};
// Not advisory locks: processes take turns with them, as when months are made at a start.
static const DbStatement state = {
    .name = "figures_database",
    .sql = "SELECT pg_database_size(current_database()),"
           " (SELECT count(*) FROM pg_locks l WHERE NOT l.granted AND l.locktype <> 'advisory' AND "
           "l.database ="
           "  (SELECT oid FROM pg_database WHERE datname = current_database())),"
           " (SELECT deadlocks FROM pg_stat_database WHERE datname = current_database())",
};
// Of each table that has a child for each month: until when it has one. The bounds are in the
// catalogue, readable for everyone.
static const DbStatement runway = {
    .name = "figures_runway",
    .sql = "SELECT floor(extract(epoch FROM min(m.until) - now()))::int8"
           " FROM (SELECT max(substring(pg_get_expr(c.relpartbound, c.oid)"
           "   FROM 'TO \\(''([^'']+)''\\)')::timestamptz) AS until"
           "  FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid"
           "  JOIN pg_namespace n ON n.oid = c.relnamespace"
           "  WHERE n.nspname IN ('dispatcher', 'archiver') AND c.relispartition"
           "   AND pg_get_expr(c.relpartbound, c.oid) ~ 'TO \\(''' GROUP BY i.inhparent) m",
};

static void on_timer_closed(uv_handle_t *handle)
{
    Tables *tables = handle->data;
    tables->on_stopped(tables->stopped_ctx);
}

static void end_pass(Tables *tables)
{
    tables->busy = false;
    if (tables->stopping) {
        uv_close((uv_handle_t *)&tables->timer, on_timer_closed);
    }
}

static void on_sizes(void *ctx, DbTxn *txn, const Error *err)
{
    Tables *tables = ctx;
    if (err != NULL) {
        LOG(LOG_DEBUG, "the sizes of tables could not be read; trying again", log_error(err));
        end_pass(tables);
        return;
    }
    const PGresult *res = db_txn_result(txn, 0);
    for (int i = 0; i < db_rows(res) && i < NAMES; i++) {
        metric_set(tables->bytes[i], (double)db_get_int(res, i, 0));
    }
    res = db_txn_result(txn, 1);
    metric_set(tables->database, (double)db_get_int(res, 0, 0));
    metric_set(tables->locks, (double)db_get_int(res, 0, 1));
    metric_set(tables->deadlocks, (double)db_get_int(res, 0, 2));
    res = db_txn_result(txn, 2);
    if (db_rows(res) == 1 && !db_is_null(res, 0, 0)) {
        metric_set(tables->runway, (double)db_get_int(res, 0, 0));
    }
    end_pass(tables);
}

static void on_timer(uv_timer_t *timer)
{
    Tables *tables = timer->data;
    if (tables->busy || !db_pool_ready(tables->pool)) {
        return;
    }
    tables->busy = true;
    DbTxn *txn = db_txn_new(tables->pool);
    DbArray *wanted = db_array(db_txn_add(txn, &sizes, NULL), DB_TEXT);
    for (size_t i = 0; i < NAMES; i++) {
        db_push_text(wanted, str_from(names[i]));
    }
    (void)db_txn_add(txn, &state, NULL);
    (void)db_txn_add(txn, &runway, NULL);
    db_txn_submit(txn, on_sizes, tables);
}

static void register_metrics(Tables *tables, Metrics *metrics)
{
    for (size_t i = 0; i < NAMES; i++) {
        Buf labels;
        buf_init(&labels, 128);
        metrics_label(&labels, "table", str_from(names[i]));
        tables->bytes[i] = metrics_gauge(
            metrics, "stentor_digest_flusher_table_bytes", buf_c(&labels),
            "Size of a table with its months and indexes, every minute; the same from each "
            "replica");
        buf_done(&labels);
    }
    tables->database = metrics_gauge(
        metrics, "stentor_digest_flusher_database_bytes", "",
        "Size of the database; the same from each replica");
    tables->locks = metrics_gauge(
        metrics, "stentor_digest_flusher_database_locks_waiting", "",
        "Sessions that wait for a lock; the same from each replica");
    tables->deadlocks = metrics_gauge(
        metrics, "stentor_digest_flusher_database_deadlocks", "",
        "Deadlocks since the statistics of Postgres began; the same from each replica");
    tables->runway = metrics_gauge(
        metrics, "stentor_digest_flusher_months_runway_seconds", "",
        "How long the tables of months reach ahead, of the table with the least; the same from "
        "each replica");
}

Tables *tables_new(uv_loop_t *loop, DbPool *pool, Metrics *metrics)
{
    Tables *tables = xcalloc(1, sizeof *tables);
    tables->pool = pool;
    register_metrics(tables, metrics);
    uv_timer_init(loop, &tables->timer);
    tables->timer.data = tables;
    uv_timer_start(&tables->timer, on_timer, FIRST_MS, PERIOD_MS);
    return tables;
}

void tables_stop(Tables *tables, void (*on_stopped)(void *ctx), void *ctx)
{
    tables->stopping = true;
    tables->on_stopped = on_stopped;
    tables->stopped_ctx = ctx;
    uv_timer_stop(&tables->timer);
    if (!tables->busy) {
        end_pass(tables);
    }
}

void tables_free(Tables *tables)
{
    free(tables);
}
