// SPDX-License-Identifier: Apache-2.0
// Folds events and flushes them into a real Postgres as the archiver does. Included behind
// cmocka.h; each test begins with empty history.
#pragma once

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

#include "common/history/history_sql.h"
#include "tests/unit/common/db/migrated.h"
#include "tests/unit/common/history/history_events.h"

typedef struct Fixture {
    uv_loop_t loop;
    DbPool *pool; // as the service's own role, which cannot bypass row-level security
    PGconn *super;
    Arena *arena;
    Fold *fold;
    HistorySql sql;
    HistoryMonths months;
    bool done;
    ErrorKind kind;
    char text[240];
} Fixture;

static inline const char *test_url(void)
{
    const char *url = getenv("STENTOR_TEST_DATABASE_URL");
    assert_non_null(url);
    return url;
}

static inline void sql(Fixture *f, const char *text)
{
    PGresult *res = PQexec(f->super, text);
    ExecStatusType status = PQresultStatus(res);
    PQclear(res);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
        fail_msg("%s: %s", text, PQerrorMessage(f->super));
    }
}

// The one value of a query, in the arena; "" when there is none.
static inline const char *value(Fixture *f, const char *text)
{
    PGresult *res = PQexec(f->super, text);
    if (PQresultStatus(res) != PGRES_TUPLES_OK) {
        fail_msg("%s: %s", text, PQerrorMessage(f->super));
    }
    const char *found = PQntuples(res) == 1 ? PQgetvalue(res, 0, 0) : "";
    found = arena_cstr(f->arena, str_from(found));
    PQclear(res);
    return found;
}

static inline int set_up(void **state)
{
    Fixture *f = xcalloc(1, sizeof(*f));
    uv_loop_init(&f->loop);
    f->arena = arena_new(0);
    f->fold = fold_new();
    history_sql_init(&f->sql, "archiver", HISTORY_LATE_APART);
    f->super = PQconnectdb(test_url());
    assert_int_equal(PQstatus(f->super), CONNECTION_OK);
    DbPoolOptions options = {
        .url = arena_printf(f->arena, "%s&user=stentor_archiver", test_url()),
        .application_name = "history_flush",
        .connections = 1};
    f->pool = db_pool_new(&f->loop, &options);
    sql(f, "DELETE FROM archiver.notifications; DELETE FROM archiver.delivery_attempts");
    *state = f;
    return 0;
}

static inline void on_pool_closed(void *ctx)
{
    Fixture *f = ctx;
    f->done = true;
}

static inline void run_until_done(Fixture *f)
{
    while (!f->done) {
        assert_true(uv_run(&f->loop, UV_RUN_ONCE) != 0 || f->done);
    }
}

static inline int tear_down(void **state)
{
    Fixture *f = *state;
    f->done = false;
    db_pool_close(f->pool, on_pool_closed, f);
    run_until_done(f);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    PQfinish(f->super);
    fold_free(f->fold);
    arena_free(f->arena);
    free(f);
    return 0;
}

static inline void on_flush_done(void *ctx, DbTxn *txn, const Error *err)
{
    (void)txn;
    Fixture *f = ctx;
    f->done = true;
    f->kind = err == NULL ? ERROR_NONE : err->kind;
    snprintf(f->text, sizeof(f->text), "%s", err == NULL ? "" : err->text);
}

static inline void submit(Fixture *f, DbTxn *txn)
{
    f->done = false;
    db_txn_submit(txn, on_flush_done, f);
    run_until_done(f);
    if (f->kind != ERROR_NONE) {
        fail_msg("%s", f->text);
    }
}

static inline void fold_ok(Fixture *f, BusMessage message)
{
    Error err = {0};
    if (!fold_event(f->fold, &message, f->arena, &err)) {
        fail_msg("%s", err.text);
    }
}

static inline void flush(Fixture *f)
{
    DbTxn *txn = db_txn_new(f->pool);
    history_write(&f->sql, f->fold, txn);
    submit(f, txn);
    fold_clear(f->fold);
}

// With the partitions of its rows, as the archiver does.
static inline void flush_with_months(Fixture *f)
{
    DbTxn *txn = db_txn_new(f->pool);
    history_months_write(&f->sql, &f->months, f->fold, txn);
    history_write(&f->sql, f->fold, txn);
    submit(f, txn);
    history_months_committed(&f->months);
    fold_clear(f->fold);
}
