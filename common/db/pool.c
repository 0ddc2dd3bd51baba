// SPDX-License-Identifier: Apache-2.0
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/log.h"
#include "common/db/connection.h"
#include "common/db/errors.h"
#include "common/db/txn.h"

enum {
    CONNECTIONS_MAX = 32,
    QUEUE_DEFAULT = 1024,
    STATEMENT_TIMEOUT_DEFAULT_MS =
        10000, // with the grace below STENTOR_DRAIN_MS: a lost answer must not outlast a drain
    ANSWER_GRACE_MS = 2000, // the server's own timeout comes first and has better words
    TICK_MS = 500,
    TELL_EVERY_MS = 5000, // another reason for the same absence
    REFUSED_MS = 10000,   // so long a refused write counts: who gets no work would not try again
    STAGGER_MS = 20,
};

typedef struct TxnList {
    DbTxn *head;
    DbTxn *tail;
    int count;
} TxnList;

struct DbPool {
    uv_loop_t *loop;
    char *url;
    char *application_name;
    int statement_timeout_ms;
    int queue_max;
    DbConn *conns[CONNECTIONS_MAX]; // NULL once closed
    int conn_count;
    TxnList waiting;  // for a connection
    TxnList answered; // on_done is still to be called
    int pending;
    uv_timer_t later; // calls on_done for what was answered inside a caller's call
    uv_timer_t tick;
    int open; // connections and timers not closed yet
    bool closing;
    bool up; // as logged
    bool reported_down;
    uint64_t logged_ms;  // when it was last said why
    Error reported;      // what
    Error last_error;    // of a connection
    uint64_t refused_ms; // when a write was last refused; 0: never
    Error refused;
    DbTimed on_timed;
    void *timed_ctx;
    void (*on_closed)(void *ctx);
    void *ctx;
};

static void push_txn(TxnList *list, DbTxn *txn)
{
    txn->next = NULL;
    if (list->tail != NULL) {
        list->tail->next = txn;
    } else {
        list->head = txn;
    }
    list->tail = txn;
    list->count++;
}

static DbTxn *pop_txn(TxnList *list)
{
    DbTxn *txn = list->head;
    if (txn != NULL) {
        list->head = txn->next;
        list->tail = list->head != NULL ? list->tail : NULL;
        list->count--;
    }
    return txn;
}

// ---- answering ----

static void deliver_one(DbPool *pool)
{
    DbTxn *txn = pop_txn(&pool->answered);
    pool->pending--;
    txn->on_done(txn->ctx, txn, txn->answered ? NULL : &txn->error);
    db_txn_free(txn);
}

// No more than there are now: an on_done that submits again and is refused must not keep the loop
// here.
static void deliver(DbPool *pool)
{
    for (int left = pool->answered.count; left > 0; left--) {
        deliver_one(pool);
    }
}

static void on_later(uv_timer_t *timer)
{
    deliver(timer->data);
}

// From the loop the caller delivers at its end; from inside a submit or a close the timer does.
static void answer(DbPool *pool, DbTxn *txn, const Error *err)
{
    if (err != NULL && db_error_refuses_writes(err)) {
        if (pool->refused_ms == 0 || uv_now(pool->loop) - pool->refused_ms >= REFUSED_MS) {
            LOG(LOG_ERROR, "postgres takes no writes, trying again", log_error(err));
        }
        pool->refused_ms = uv_now(pool->loop);
        pool->refused = *err;
    }
    db_txn_answer(txn, err);
    push_txn(&pool->answered, txn);
}

static void answer_later(DbPool *pool, DbTxn *txn, const Error *err)
{
    answer(pool, txn, err);
    if (!pool->closing) {
        uv_timer_start(&pool->later, on_later, 0, 0);
    }
}

// The one whose session fits best, and of those the lowest: the same few stay warm.
static DbConn *find_idle(const DbPool *pool, const DbTxn *txn)
{
    DbConn *best = NULL;
    SessionFit best_fit = FIT_OTHER;
    for (int i = 0; i < pool->conn_count && best_fit != FIT_SAME; i++) {
        DbConn *conn = pool->conns[i];
        if (conn != NULL && db_conn_idle(conn)) {
            SessionFit fit = db_conn_fit(conn, txn);
            if (best == NULL || fit > best_fit) {
                best = conn;
                best_fit = fit;
            }
        }
    }
    return best;
}

static void pump(DbPool *pool)
{
    while (!pool->closing && pool->waiting.head != NULL) {
        DbConn *conn = find_idle(pool, pool->waiting.head);
        if (conn == NULL) {
            return;
        }
        DbTxn *txn = pop_txn(&pool->waiting);
        Error err = {0};
        txn->sent_ns = uv_hrtime();
        if (!db_conn_send(conn, txn, &err)) {
            answer_later(pool, txn, &err);
        }
    }
}

// ---- connections ----

static void finish_close(DbPool *pool)
{
    if (--pool->open > 0) {
        return;
    }
    while (pool->answered.head != NULL) {
        deliver_one(pool);
    }
    void (*on_closed)(void *ctx) = pool->on_closed;
    void *ctx = pool->ctx;
    free(pool->url);
    free(pool->application_name);
    free(pool);
    if (on_closed != NULL) {
        on_closed(ctx);
    }
}

static void on_conn_live(void *ctx, DbConn *conn)
{
    (void)conn;
    DbPool *pool = ctx;
    if (!pool->up) {
        LOG(LOG_INFO, "postgres connected", log_text("application", pool->application_name));
    }
    pool->up = true;
    pool->reported_down = false;
    pump(pool);
}

static void on_conn_answered(void *ctx, DbConn *conn, DbTxn *txn, const Error *err)
{
    (void)conn;
    DbPool *pool = ctx;
    if (pool->on_timed != NULL) {
        pool->on_timed(pool->timed_ctx, (double)(uv_hrtime() - txn->sent_ns) / 1e9);
    }
    answer(pool, txn, err);
    pump(pool); // the server works on the next while on_done runs
    if (!pool->closing) {
        deliver(pool);
    }
}

// The first word of an absence is mostly "the server closed the connection"; why no new one comes
// (no slots, a wrong password) is said by a later attempt.
static bool is_news(const DbPool *pool, const Error *err)
{
    bool again = uv_now(pool->loop) - pool->logged_ms >= TELL_EVERY_MS;
    return !pool->reported_down || (again && strcmp(pool->reported.text, err->text) != 0);
}

// One line when the last connection goes and one when the first comes, and one for each other
// reason in between: not one for each attempt.
static void on_conn_lost(void *ctx, DbConn *conn, const Error *err)
{
    (void)conn;
    DbPool *pool = ctx;
    pool->last_error = *err;
    if (db_pool_ready(pool) || !is_news(pool, err)) {
        return;
    }
    pool->up = false;
    pool->reported_down = true;
    pool->logged_ms = uv_now(pool->loop);
    pool->reported = *err;
    LOG(LOG_WARN, "postgres is not reachable, trying again", log_error(err));
}

static void on_conn_closed(void *ctx)
{
    finish_close(ctx);
}

static void on_timer_closed(uv_handle_t *handle)
{
    finish_close(handle->data);
}

// What has waited too long for a connection. The queue is in order of deadlines.
static void expire(DbPool *pool)
{
    uint64_t now = uv_now(pool->loop);
    while (pool->waiting.head != NULL && pool->waiting.head->deadline_ms <= now) {
        Error err;
        error_set(
            &err, ERROR_TRANSIENT, "no connection to postgres in %d ms (%s)",
            pool->statement_timeout_ms,
            pool->last_error.kind != ERROR_NONE ? pool->last_error.text
                                                : "all connections are busy");
        answer(pool, pop_txn(&pool->waiting), &err);
    }
    deliver(pool);
}

static void on_tick(uv_timer_t *timer)
{
    DbPool *pool = timer->data;
    expire(pool);
    if (pool->waiting.head == NULL) {
        uv_timer_stop(timer);
    }
}

// It ticks while something waits, and no longer.
static void watch_waiting(DbPool *pool)
{
    if (pool->waiting.head != NULL && !uv_is_active((uv_handle_t *)&pool->tick)) {
        uv_timer_start(&pool->tick, on_tick, TICK_MS, TICK_MS);
    }
}

// ---- the surface ----

static void open_connections(DbPool *pool)
{
    const DbConnEvents events = {
        .live = on_conn_live,
        .answered = on_conn_answered,
        .lost = on_conn_lost,
        .closed = on_conn_closed,
    };
    for (int i = 0; i < pool->conn_count; i++) {
        const DbConnOptions options = {
            .url = pool->url,
            .application_name = pool->application_name,
            .statement_timeout_ms = pool->statement_timeout_ms,
            .answer_timeout_ms = pool->statement_timeout_ms + ANSWER_GRACE_MS,
            .stagger_ms = i * STAGGER_MS,
        };
        pool->conns[i] = db_conn_new(pool->loop, &options, &events, pool);
    }
}

DbPool *db_pool_new(uv_loop_t *loop, const DbPoolOptions *options)
{
    assert(options->connections >= 1 && options->connections <= CONNECTIONS_MAX);
    DbPool *pool = xcalloc(1, sizeof *pool);
    pool->loop = loop;
    pool->url = xstrdup(options->url);
    pool->application_name =
        xstrdup(options->application_name != NULL ? options->application_name : "stentor");
    pool->conn_count = options->connections;
    pool->queue_max = options->queue_max > 0 ? options->queue_max : QUEUE_DEFAULT;
    pool->statement_timeout_ms = options->statement_timeout_ms > 0 ? options->statement_timeout_ms
                                                                   : STATEMENT_TIMEOUT_DEFAULT_MS;
    uv_timer_init(loop, &pool->later);
    uv_timer_init(loop, &pool->tick);
    pool->later.data = pool;
    pool->tick.data = pool;
    pool->open = 2 + pool->conn_count;
    open_connections(pool);
    return pool;
}

void db_pool_close(DbPool *pool, void (*on_closed)(void *ctx), void *ctx)
{
    if (pool->closing) {
        return;
    }
    pool->closing = true;
    pool->on_closed = on_closed;
    pool->ctx = ctx;
    Error err;
    error_set(&err, ERROR_CANCELLED, "postgres: closing");
    for (int i = 0; i < pool->conn_count; i++) {
        db_conn_close(TAKE(pool->conns[i]));
    }
    for (DbTxn *txn = pop_txn(&pool->waiting); txn != NULL; txn = pop_txn(&pool->waiting)) {
        answer(pool, txn, &err);
    }
    uv_close((uv_handle_t *)&pool->later, on_timer_closed);
    uv_close((uv_handle_t *)&pool->tick, on_timer_closed);
}

bool db_pool_ready(const DbPool *pool)
{
    for (int i = 0; i < pool->conn_count; i++) {
        if (pool->conns[i] != NULL && db_conn_live(pool->conns[i])) {
            return true;
        }
    }
    return false;
}

DbPoolStats db_pool_stats(const DbPool *pool)
{
    DbPoolStats stats = {.waiting = pool->waiting.count};
    for (int i = 0; i < pool->conn_count; i++) {
        const DbConn *conn = pool->conns[i];
        bool live = conn != NULL && db_conn_live(conn);
        bool idle = live && db_conn_idle(conn);
        stats.idle += idle ? 1 : 0;
        stats.busy += live && !idle ? 1 : 0;
        stats.absent += live ? 0 : 1;
    }
    return stats;
}

void db_pool_on_timed(DbPool *pool, DbTimed on_timed, void *ctx)
{
    pool->on_timed = on_timed;
    pool->timed_ctx = ctx;
}

const char *db_pool_trouble(const DbPool *pool)
{
    if (!db_pool_ready(pool)) {
        return pool->last_error.kind != ERROR_NONE ? pool->last_error.text : NULL;
    }
    bool lately = pool->refused_ms > 0 && uv_now(pool->loop) - pool->refused_ms < REFUSED_MS;
    return lately ? pool->refused.text : NULL;
}

int db_pool_pending(const DbPool *pool)
{
    return pool->pending;
}

uv_loop_t *db_pool_loop(const DbPool *pool)
{
    return pool->loop;
}

void db_txn_submit(DbTxn *txn, DbDone on_done, void *ctx)
{
    DbPool *pool = txn->pool;
    txn->on_done = on_done;
    txn->ctx = ctx;
    pool->pending++;
    Error err;
    if (pool->closing) {
        error_set(&err, ERROR_CANCELLED, "postgres: closing");
        answer_later(pool, txn, &err);
        return;
    }
    if (!db_txn_seal(txn)) {
        err = txn->error;
        answer_later(pool, txn, &err);
        return;
    }
    if (pool->waiting.count >= pool->queue_max) {
        error_set(
            &err, ERROR_TRANSIENT, "%d transactions wait for postgres already", pool->queue_max);
        answer_later(pool, txn, &err);
        return;
    }
    txn->deadline_ms = uv_now(pool->loop) + (uint64_t)pool->statement_timeout_ms;
    push_txn(&pool->waiting, txn);
    pump(pool);
    watch_waiting(pool);
}
