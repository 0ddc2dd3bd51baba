// SPDX-License-Identifier: Apache-2.0
// One libpq connection on the loop, in pipeline mode, with one transaction at a time. It connects
// by itself, again and again. Private to common/db: the pool holds several, a lock or a listener
// one. Law: events come from the loop, never from inside db_conn_send; from inside db_conn_close
// only `answered` may.
#pragma once

#include "common/db/line/session.h"

typedef struct DbConn DbConn;

typedef struct DbConnEvents {
    void (*live)(void *ctx, DbConn *conn); // connected: may be given work
    // The transaction is the receiver's again. The connection is idle (db_conn_idle) or was lost.
    void (*answered)(void *ctx, DbConn *conn, DbTxn *txn, const Error *err);
    // An attempt failed or a live connection died. It tries again by itself.
    void (*lost)(void *ctx, DbConn *conn, const Error *err);
    // What another session said on a channel that this one listens to. May be NULL. The receiver
    // must not close the connection inside it.
    void (*notified)(void *ctx, DbConn *conn, Str payload);
    void (*closed)(void *ctx); // all handles are closed and the connection is gone
} DbConnEvents;

typedef struct DbConnOptions {
    const char *url; // borrowed for the connection's life, like all texts here
    const char *application_name;
    const char *server_options; // further "-c name=value" for the session; may be NULL
    int statement_timeout_ms;
    int answer_timeout_ms; // no answer within: the connection is reset
    int stagger_ms;        // added to each back-off, so that many do not knock at once
} DbConnOptions;

DbConn *db_conn_new(
    uv_loop_t *loop, const DbConnOptions *options, const DbConnEvents *events, void *ctx);
// A transaction under way is answered with ERROR_CANCELLED at once.
void db_conn_close(DbConn *conn);
bool db_conn_idle(const DbConn *conn);
SessionFit db_conn_fit(const DbConn *conn, const DbTxn *txn); // of an idle one
bool db_conn_live(const DbConn *conn); // idle or busy
// Sends a sealed transaction on an idle connection. false: it was not sent and stays the caller's.
bool db_conn_send(DbConn *conn, DbTxn *txn, Error *err);
