// SPDX-License-Identifier: Apache-2.0
#include "common/db/lock.h"

#include <stdlib.h>

#include "common/base/arena.h"
#include "common/db/connection.h"
#include "common/db/txn.h"
#include "common/ticks/ticks.h"

// YIELD_MS: who lost it comes back after every stand-by has had its turn: its machine or network
// may be the sick one.
// AGAIN_MS: a session that was asked to end has ended by then.
enum { CHECK_MS = 1000, TIMEOUT_MS = 2000, YIELD_MS = DB_LOCK_POLL_MS + 250, AGAIN_MS = 100 };

// When the holder's whole machine goes, the server is to notice in seconds, not in hours. A unix
// socket ignores them.
static const char KEEPALIVES[] =
    "-c tcp_keepalives_idle=2 -c tcp_keepalives_interval=1 -c tcp_keepalives_count=3";

static const DbStatement TRY_LOCK = {"db_lock_try", "SELECT pg_try_advisory_lock($1::int8)"};
static const DbStatement CHECK = {"db_lock_check", "SELECT 1"};

// The holder's CHECK is its sign of life: its session's state changes with each. What a stopped
// holder was writing would block its successor just as well, so its half-sent transactions go too;
// which of the role's sessions are the holder's own Postgres cannot tell, but one that leaves its
// transaction waiting for so long is sick. A role may end its own role's sessions, and no others.
static const DbStatement RELIEVE = {
    "db_lock_relieve",
    "WITH silent AS ("
    " SELECT a.pid FROM pg_locks AS l JOIN pg_stat_activity AS a ON a.pid = l.pid"
    " WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1"
    " AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    " AND l.classid = (($1::int8 >> 32) & 4294967295)::oid AND l.objid = ($1::int8 & "
    "4294967295)::oid"
    " AND a.usename = current_user AND a.pid <> pg_backend_pid() AND a.state = 'idle'"
    " AND a.state_change < clock_timestamp() - $2::int4 * interval '1 ms')"
    " SELECT count(pg_terminate_backend(a.pid)) FROM pg_stat_activity AS a"
    " WHERE a.pid IN (SELECT pid FROM silent) OR (EXISTS (SELECT FROM silent)"
    " AND a.datname = current_database() AND a.usename = current_user"
    " AND a.pid <> pg_backend_pid() AND a.wait_event = 'ClientRead'"
    " AND a.xact_start < clock_timestamp() - $2::int4 * interval '1 ms')"};

struct DbLock {
    char *url;
    int64_t key;
    DbConn *conn;
    uv_timer_t timer; // next try, or next sign of life
    bool held;
    bool yields; // held it and lost it
    bool closing;
    int open; // connection and timer
    void (*on_change)(void *ctx, bool held);
    void (*on_closed)(void *ctx);
    void *ctx;
    void *closed_ctx;
};

static void change(DbLock *lock, bool held)
{
    if (lock->held == held || lock->closing) {
        return;
    }
    lock->held = held;
    lock->on_change(lock->ctx, held);
}

// Tries, or, once held, asks for a sign of life: a session that answers is one that still holds it.
static void ask(DbLock *lock)
{
    if (lock->closing || !db_conn_idle(lock->conn)) {
        return;
    }
    DbTxn *txn = db_txn_new(NULL);
    DbParams *p = db_txn_add(txn, lock->held ? &CHECK : &TRY_LOCK, NULL);
    if (!lock->held) {
        db_i64(p, lock->key);
        p = db_txn_add(txn, &RELIEVE, NULL);
        db_i64(p, lock->key);
        db_i32(p, DB_LOCK_SILENT_MS);
    }
    Error err;
    if (!db_txn_seal(txn) || !db_conn_send(lock->conn, txn, &err)) {
        db_txn_free(txn); // the connection tells its loss by itself
    }
}

static void on_timer(uv_timer_t *timer)
{
    ask(timer->data);
}

static void start(DbLock *lock)
{
    if (!lock->yields) {
        ask(lock);
        return;
    }
    lock->yields = false;
    uv_timer_start(&lock->timer, on_timer, YIELD_MS, 0);
}

static void take_answer(DbLock *lock, DbTxn *txn, const Error *err)
{
    db_txn_answer(txn, err);
    bool tried = err == NULL && !lock->held;
    bool got = tried && db_get_int(db_txn_result(txn, 0), 0, 0) == 1;
    bool relieved = tried && !got && db_get_int(db_txn_result(txn, 1), 0, 0) > 0;
    db_txn_free(txn);
    if (lock->closing) {
        return;
    }
    uint64_t wait_ms = lock->held || got ? ticks_until(lock->timer.loop, CHECK_MS)
                       : relieved        ? AGAIN_MS
                                         : DB_LOCK_POLL_MS;
    uv_timer_start(&lock->timer, on_timer, wait_ms, 0);
    if (got) {
        change(lock, true);
    }
}

static void on_conn_live(void *ctx, DbConn *conn)
{
    (void)conn;
    start(ctx);
}

static void on_conn_answered(void *ctx, DbConn *conn, DbTxn *txn, const Error *err)
{
    (void)conn;
    take_answer(ctx, txn, err);
}

static void on_conn_lost(void *ctx, DbConn *conn, const Error *err)
{
    (void)conn;
    (void)err;
    DbLock *lock = ctx;
    uv_timer_stop(&lock->timer);
    lock->yields = lock->yields || lock->held;
    change(lock, false);
}

static void finish_close(DbLock *lock)
{
    if (--lock->open > 0) {
        return;
    }
    void (*on_closed)(void *ctx) = lock->on_closed;
    void *ctx = lock->closed_ctx;
    free(lock->url);
    free(lock);
    if (on_closed != NULL) {
        on_closed(ctx);
    }
}

static void on_conn_closed(void *ctx)
{
    finish_close(ctx);
}

static void on_timer_closed(uv_handle_t *handle)
{
    finish_close(handle->data);
}

int64_t db_lock_key(const char *name)
{
    return (int64_t)str_hash(str_from(name));
}

DbLock *db_lock_new(
    uv_loop_t *loop, const char *url, const char *name, void (*on_change)(void *ctx, bool held),
    void *ctx)
{
    DbLock *lock = xcalloc(1, sizeof *lock);
    lock->url = xstrdup(url);
    lock->key = db_lock_key(name);
    lock->on_change = on_change;
    lock->ctx = ctx;
    lock->open = 2;
    uv_timer_init(loop, &lock->timer);
    lock->timer.data = lock;
    const DbConnOptions options = {
        .url = lock->url,
        .application_name = "stentor-lock",
        .server_options = KEEPALIVES,
        .statement_timeout_ms = TIMEOUT_MS,
        .answer_timeout_ms = TIMEOUT_MS,
    };
    const DbConnEvents events = {
        .live = on_conn_live,
        .answered = on_conn_answered,
        .lost = on_conn_lost,
        .closed = on_conn_closed,
    };
    lock->conn = db_conn_new(loop, &options, &events, lock);
    return lock;
}

bool db_lock_held(const DbLock *lock)
{
    return lock->held;
}

void db_lock_close(DbLock *lock, void (*on_closed)(void *ctx), void *ctx)
{
    if (lock->closing) {
        return;
    }
    lock->closing = true;
    lock->held = false;
    lock->on_closed = on_closed;
    lock->closed_ctx = ctx;
    db_conn_close(lock->conn);
    uv_close((uv_handle_t *)&lock->timer, on_timer_closed);
}
