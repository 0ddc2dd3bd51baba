// SPDX-License-Identifier: Apache-2.0
#include "common/db/listen.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"
#include "common/db/connection.h"
#include "common/db/txn.h"

enum { TIMEOUT_MS = 5000, CHANNEL_MAX = 63 };

static const DbStatement CHECK = {"db_listen_check", "SELECT 1"};

struct DbListen {
    char *url;
    char sql[CHANNEL_MAX + 16];
    DbStatement listen;
    DbConn *conn;
    uv_timer_t check;
    bool live; // LISTEN is committed on this connection
    bool closing;
    int open; // connection and timer
    DbListenEvents events;
    void *ctx;
    void (*on_closed)(void *ctx);
    void *closed_ctx;
};

static void change(DbListen *listen, bool live)
{
    if (listen->live == live || listen->closing) {
        return;
    }
    listen->live = live;
    listen->events.listening(listen->ctx, live);
}

static void say(DbListen *listen, const DbStatement *statement)
{
    if (listen->closing || !db_conn_idle(listen->conn)) {
        return;
    }
    DbTxn *txn = db_txn_new(NULL);
    db_txn_add(txn, statement, NULL);
    Error err;
    if (!db_txn_seal(txn) || !db_conn_send(listen->conn, txn, &err)) {
        db_txn_free(txn); // the connection tells its loss by itself
    }
}

// One that could not listen is asked again at the next check.
static void on_check(uv_timer_t *timer)
{
    DbListen *listen = timer->data;
    say(listen, listen->live ? &CHECK : &listen->listen);
}

static void on_conn_live(void *ctx, DbConn *conn)
{
    (void)conn;
    DbListen *listen = ctx;
    say(listen, &listen->listen);
}

static void on_conn_answered(void *ctx, DbConn *conn, DbTxn *txn, const Error *err)
{
    (void)conn;
    DbListen *listen = ctx;
    db_txn_answer(txn, err);
    db_txn_free(txn);
    if (err == NULL) {
        change(listen, true);
    }
}

static void on_conn_lost(void *ctx, DbConn *conn, const Error *err)
{
    (void)conn;
    (void)err;
    change(ctx, false);
}

static void on_conn_notified(void *ctx, DbConn *conn, Str payload)
{
    (void)conn;
    DbListen *listen = ctx;
    if (!listen->closing) {
        listen->events.notified(listen->ctx, payload);
    }
}

static void finish_close(DbListen *listen)
{
    if (--listen->open > 0) {
        return;
    }
    void (*on_closed)(void *ctx) = listen->on_closed;
    void *ctx = listen->closed_ctx;
    free(listen->url);
    free(listen);
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

DbListen *db_listen_new(
    uv_loop_t *loop, const char *url, const char *channel, const DbListenEvents *events, void *ctx)
{
    DbListen *listen = xcalloc(1, sizeof *listen);
    listen->url = xstrdup(url);
    listen->events = *events;
    listen->ctx = ctx;
    listen->open = 2;
    // The name becomes SQL, for LISTEN takes no parameter.
    size_t len = strlen(channel);
    assert(len > 0 && len <= CHANNEL_MAX);
    assert(strspn(channel, "abcdefghijklmnopqrstuvwxyz0123456789_") == len);
    snprintf(listen->sql, sizeof listen->sql, "LISTEN \"%s\"", channel);
    listen->listen = (DbStatement){.name = "db_listen", .sql = listen->sql};
    uv_timer_init(loop, &listen->check);
    listen->check.data = listen;
    uv_timer_start(&listen->check, on_check, DB_LISTEN_CHECK_MS, DB_LISTEN_CHECK_MS);
    const DbConnOptions options = {
        .url = listen->url,
        .application_name = "stentor-listen",
        .statement_timeout_ms = TIMEOUT_MS,
        .answer_timeout_ms = TIMEOUT_MS,
    };
    const DbConnEvents conn_events = {
        .live = on_conn_live,
        .answered = on_conn_answered,
        .lost = on_conn_lost,
        .notified = on_conn_notified,
        .closed = on_conn_closed,
    };
    listen->conn = db_conn_new(loop, &options, &conn_events, listen);
    return listen;
}

bool db_listen_live(const DbListen *listen)
{
    return listen->live;
}

void db_listen_close(DbListen *listen, void (*on_closed)(void *ctx), void *ctx)
{
    if (listen->closing) {
        return;
    }
    listen->closing = true;
    listen->live = false;
    listen->on_closed = on_closed;
    listen->closed_ctx = ctx;
    db_conn_close(listen->conn);
    uv_close((uv_handle_t *)&listen->check, on_timer_closed);
}
