// SPDX-License-Identifier: Apache-2.0
// A real Postgres with Stentor's schemas, the flusher's own role in a pool, and a superuser beside
// it to look at what is there. Private to the tests of this folder.
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "services/digest-flusher/digest_sql.h"
#include "services/digest-flusher/due_work_sql.h"
#include "tests/unit/common/db/migrated.h"

enum { WORK_MAX = 6000 };

typedef struct Fixture {
    uv_loop_t loop;
    DbPool *pool; // as the service's own role, which cannot bypass row-level security
    PGconn *super;
    Arena *arena;
    const DueWork *work[WORK_MAX];
    size_t work_count;
    bool done;
    ErrorKind kind;
    char text[240];
    int rows;
    Str first_id;
    Str first_subject;
    Str first_event_id;
    Str first_payload;
    int64_t next_us;
    int64_t waiting;
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

// The first cell of the answer, "" for NULL or no row.
static inline const char *cell(Fixture *f, const char *text)
{
    PGresult *res = PQexec(f->super, text);
    if (PQresultStatus(res) != PGRES_TUPLES_OK) {
        fail_msg("%s: %s", text, PQerrorMessage(f->super));
    }
    const char *value = PQntuples(res) > 0 ? PQgetvalue(res, 0, 0) : "";
    char *copy = arena_cstr(f->arena, str_from(value));
    PQclear(res);
    return copy;
}

static inline int set_up(void **state)
{
    Fixture *f = xcalloc(1, sizeof(*f));
    uv_loop_init(&f->loop);
    f->arena = arena_new(0);
    f->super = PQconnectdb(test_url());
    assert_int_equal(PQstatus(f->super), CONNECTION_OK);
    DbPoolOptions options = {
        .url = arena_printf(f->arena, "%s&user=stentor_digest_flusher", test_url()),
        .application_name = "digest_flusher_pg_test",
        .connections = 1};
    f->pool = db_pool_new(&f->loop, &options);
    sql(f, "TRUNCATE digest_flusher.due_work, digest_flusher.cancellations, "
           "digest_flusher.emitted, digest_flusher.cancelled, digest_flusher.digest_windows, "
           "digest_flusher.digest_items,"
           " digest_flusher.preferences, digest_flusher.unsubscribed_recipients");
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
    arena_free(f->arena);
    free(f);
    return 0;
}

static inline void on_txn_done(void *ctx, DbTxn *txn, const Error *err)
{
    (void)txn;
    Fixture *f = ctx;
    f->done = true;
    f->kind = err == NULL ? ERROR_NONE : err->kind;
    snprintf(f->text, sizeof(f->text), "%s", err == NULL ? "" : err->text);
}

static inline void submit(Fixture *f, DbTxn *txn, DbDone on_done)
{
    f->done = false;
    db_txn_submit(txn, on_done, f);
    run_until_done(f);
    if (f->kind != ERROR_NONE) {
        fail_msg("%s", f->text);
    }
}

static inline void insert(Fixture *f)
{
    DbTxn *txn = db_txn_new(f->pool);
    due_work_insert(txn, f->work, f->work_count);
    submit(f, txn, on_txn_done);
}
