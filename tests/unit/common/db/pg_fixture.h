// SPDX-License-Identifier: Apache-2.0
// What the tests of common/db share: a loop, a pool on the real server, an administrator's
// connection, and waiting with a deadline. Included behind cmocka.h.
#pragma once

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "common/db/db.h"

enum { ANSWERS_MAX = 4, WAIT_MS = 15000 };

typedef struct Fixture {
    uv_loop_t loop;
    DbPool *pool;
    PGconn *admin;
    bool closed;
} Fixture;

typedef struct Answer {
    bool done;
    Error err; // ERROR_NONE: committed
    PGresult *rows[ANSWERS_MAX];
} Answer;

static inline const char *test_url(void)
{
    const char *url = getenv("STENTOR_TEST_DATABASE_URL");
    if (url == NULL) {
        fail_msg("run it through tests/harness/with-postgres");
    }
    return url;
}

// The same server with another role or database: "&user=stentor_ingest".
static inline const char *url_with(const char *more, char *out, size_t size)
{
    snprintf(out, size, "%s%s", test_url(), more);
    return out;
}

static inline void on_too_late(uv_timer_t *timer)
{
    *(bool *)timer->data = true;
}

static inline void on_timer_gone(uv_handle_t *handle)
{
    handle->data = NULL;
}

// Runs the loop until *flag is `wanted` or the time is up. true: it came.
static inline bool run_for(uv_loop_t *loop, const bool *flag, bool wanted, uint64_t ms)
{
    bool late = false;
    uv_timer_t timer;
    uv_timer_init(loop, &timer);
    timer.data = &late;
    uv_timer_start(&timer, on_too_late, ms, 0);
    while (*flag != wanted && !late) {
        uv_run(loop, UV_RUN_ONCE);
    }
    uv_close((uv_handle_t *)&timer, on_timer_gone);
    while (timer.data != NULL) {
        uv_run(loop, UV_RUN_NOWAIT);
    }
    return *flag == wanted;
}

static inline void run_ms(uv_loop_t *loop, uint64_t ms)
{
    bool never = false;
    run_for(loop, &never, true, ms);
}

// ---- the administrator ----

static inline void admin_exec(PGconn *admin, const char *sql)
{
    PGresult *res = PQexec(admin, sql);
    ExecStatusType status = PQresultStatus(res);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
        fail_msg("%s: %s", sql, PQerrorMessage(admin));
    }
    PQclear(res);
}

// The first value of the answer, as text; "" when there is none. Valid until the next call.
static inline const char *admin_value(PGconn *admin, const char *sql)
{
    static char value[512];
    PGresult *res = PQexec(admin, sql);
    if (PQresultStatus(res) != PGRES_TUPLES_OK) {
        fail_msg("%s: %s", sql, PQerrorMessage(admin));
    }
    snprintf(value, sizeof value, "%s", PQntuples(res) > 0 ? PQgetvalue(res, 0, 0) : "");
    PQclear(res);
    return value;
}

static inline PGconn *admin_connect(void)
{
    PGconn *admin = PQconnectdb(test_url());
    assert_int_equal(PQstatus(admin), CONNECTION_OK);
    admin_exec(admin, "SET client_min_messages = error");
    return admin;
}

// ---- the pool ----

static inline Fixture *fixture_new(const DbPoolOptions *options)
{
    Fixture *fx = calloc(1, sizeof *fx);
    uv_loop_init(&fx->loop);
    fx->admin = admin_connect();
    fx->pool = db_pool_new(&fx->loop, options);
    return fx;
}

static inline void on_pool_closed(void *ctx)
{
    *(bool *)ctx = true;
}

static inline void fixture_close_pool(Fixture *fx)
{
    if (fx->pool != NULL) {
        db_pool_close(fx->pool, on_pool_closed, &fx->closed);
        assert_true(run_for(&fx->loop, &fx->closed, true, WAIT_MS));
        fx->pool = NULL;
    }
}

static inline void fixture_free(Fixture *fx)
{
    fixture_close_pool(fx);
    PQfinish(fx->admin);
    uv_run(&fx->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&fx->loop), 0);
    free(fx);
}

// ---- transactions ----

static inline void on_answer(void *ctx, DbTxn *txn, const Error *err)
{
    Answer *answer = ctx;
    answer->done = true;
    if (err != NULL) {
        answer->err = *err;
        return;
    }
    for (int i = 0; i < ANSWERS_MAX && db_txn_result(txn, i) != NULL; i++) {
        answer->rows[i] = PQcopyResult(db_txn_result(txn, i), PG_COPYRES_ATTRS | PG_COPYRES_TUPLES);
    }
}

static inline void answer_clear(Answer *answer)
{
    for (int i = 0; i < ANSWERS_MAX; i++) {
        PQclear(answer->rows[i]);
    }
    *answer = (Answer){0};
}

static inline void submit_and_wait(Fixture *fx, DbTxn *txn, Answer *answer)
{
    answer_clear(answer);
    db_txn_submit(txn, on_answer, answer);
    assert_false(answer->done); // never from inside the call
    assert_true(run_for(&fx->loop, &answer->done, true, WAIT_MS));
}

// One statement without parameters.
static inline void run_statement(Fixture *fx, const DbStatement *statement, Answer *answer)
{
    DbTxn *txn = db_txn_new(fx->pool);
    db_txn_add(txn, statement, NULL);
    submit_and_wait(fx, txn, answer);
}
