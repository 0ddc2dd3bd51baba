// SPDX-License-Identifier: Apache-2.0
#include "common/db/connection.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/base/cleanup.h"
#include "common/db/errors.h"
#include "common/db/lookup.h"
#include "common/db/line/pipeline.h"

enum {
    BACKOFF_MIN_MS = 100,
    BACKOFF_MAX_MS = 5000,
    CONNECT_TIMEOUT_MS = 10000,
    SERVER_OPTIONS_SIZE = 1024,
};

typedef enum ConnState {
    CONN_WAITING,    // for the next attempt
    CONN_LOOKING_UP, // the names of the url, off the loop
    CONN_CONNECTING,
    CONN_IDLE,
    CONN_BUSY,   // has a transaction
    CONN_BROKEN, // found while sending, or outdated: the timer makes it again from the loop
    CONN_CLOSED,
} ConnState;

struct DbConn {
    uv_loop_t *loop;
    DbConnOptions options;
    DbConnEvents events;
    void *ctx;
    ConnState state;
    DbLookup *lookup; // under way
    PGconn *pg;
    uv_poll_t *poll; // a heap object: its closing outlives the socket
    int poll_fd;
    int poll_events;
    uv_timer_t
        timer; // waiting: next attempt; looking up, connecting, busy: deadline; broken: at once
    int handles;
    bool closing;
    int backoff_ms;
    Pipeline line;
    DbTxn *txn;   // under way
    Error broken; // CONN_BROKEN: why
};

static void on_timer(uv_timer_t *timer);
static void on_poll_event(uv_poll_t *poll, int status, int events);

// ---- handles ----

static void handle_closed(DbConn *conn)
{
    conn->handles--;
    if (conn->closing && conn->handles == 0) {
        void (*closed)(void *ctx) = conn->events.closed;
        void *ctx = conn->ctx;
        free(conn);
        closed(ctx);
    }
}

static void on_poll_closed(uv_handle_t *handle)
{
    DbConn *conn = handle->data;
    free(handle);
    handle_closed(conn);
}

static void on_timer_closed(uv_handle_t *handle)
{
    handle_closed(handle->data);
}

static void unwatch(DbConn *conn)
{
    if (conn->poll != NULL) {
        uv_poll_stop(conn->poll);
        uv_close((uv_handle_t *)conn->poll, on_poll_closed);
        conn->poll = NULL;
    }
}

static bool watch(DbConn *conn, int events, Error *err)
{
    int fd = PQsocket(conn->pg);
    if (conn->poll != NULL && conn->poll_fd != fd) {
        unwatch(conn);
    }
    if (conn->poll == NULL) {
        uv_poll_t *poll = xmalloc(sizeof *poll);
        int status = uv_poll_init(conn->loop, poll, fd);
        if (status != 0) {
            free(poll);
            return error_set(err, ERROR_TRANSIENT, "cannot poll: %s", uv_strerror(status));
        }
        poll->data = conn;
        conn->poll = poll;
        conn->poll_fd = fd;
        conn->poll_events = 0;
        conn->handles++;
    }
    if (conn->poll_events != events) {
        uv_poll_start(conn->poll, events, on_poll_event);
        conn->poll_events = events;
    }
    return true;
}

static void start_timer(DbConn *conn, int delay_ms)
{
    uv_timer_start(&conn->timer, on_timer, (uint64_t)delay_ms, 0);
}

// ---- life ----

DbConn *db_conn_new(
    uv_loop_t *loop, const DbConnOptions *options, const DbConnEvents *events, void *ctx)
{
    DbConn *conn = xcalloc(1, sizeof *conn);
    conn->loop = loop;
    conn->options = *options;
    conn->events = *events;
    conn->ctx = ctx;
    conn->backoff_ms = BACKOFF_MIN_MS;
    uv_timer_init(loop, &conn->timer);
    conn->timer.data = conn;
    conn->handles = 1;
    start_timer(conn, 0);
    return conn;
}

bool db_conn_idle(const DbConn *conn)
{
    return conn->state == CONN_IDLE;
}

SessionFit db_conn_fit(const DbConn *conn, const DbTxn *txn)
{
    return session_fit(&conn->line.session, txn);
}

bool db_conn_live(const DbConn *conn)
{
    return conn->state == CONN_IDLE || conn->state == CONN_BUSY;
}

static void disconnect(DbConn *conn)
{
    unwatch(conn);
    db_lookup_drop(TAKE(conn->lookup));
    if (conn->pg == NULL) {
        return;
    }
    // PQfinish says goodbye with a blocking write. Unless all is quiet, the socket is shut first,
    // so that it cannot wait for a server that hangs.
    int fd = PQsocket(conn->pg);
    if (fd >= 0 && conn->state != CONN_IDLE) {
        shutdown(fd, SHUT_RDWR);
    }
    PQfinish(conn->pg);
    conn->pg = NULL;
    pipeline_done(&conn->line);
}

static DbTxn *take_txn(DbConn *conn)
{
    return TAKE(conn->txn);
}

static void lose(DbConn *conn, const Error *why)
{
    Error err = *why;
    Error why_failed = conn->line.error; // the transaction's own, if it has one already
    disconnect(conn);
    conn->state = CONN_WAITING;
    start_timer(conn, conn->backoff_ms + conn->options.stagger_ms);
    conn->backoff_ms =
        conn->backoff_ms * 2 < BACKOFF_MAX_MS ? conn->backoff_ms * 2 : BACKOFF_MAX_MS;
    DbTxn *txn = take_txn(conn);
    if (txn != NULL) {
        // A statement that had failed before the connection did has the more useful words.
        Error answer = why_failed.kind != ERROR_NONE ? why_failed : err;
        conn->events.answered(conn->ctx, conn, txn, &answer);
    }
    if (!conn->closing) {
        conn->events.lost(conn->ctx, conn, &err);
    }
}

void db_conn_close(DbConn *conn)
{
    if (conn->closing) {
        return;
    }
    conn->closing = true;
    disconnect(conn);
    conn->state = CONN_CLOSED;
    uv_close((uv_handle_t *)&conn->timer, on_timer_closed);
    DbTxn *txn = take_txn(conn);
    if (txn != NULL) {
        Error err;
        error_set(&err, ERROR_CANCELLED, "postgres: closing");
        conn->events.answered(conn->ctx, conn, txn, &err);
    }
}

// ---- connecting ----

// The url's own "options" are kept, ours come after them. The words of a parse error are dropped:
// they may quote a password.
static bool make_server_options(const DbConn *conn, char out[SERVER_OPTIONS_SIZE], Error *err)
{
    char *words = NULL;
    PQconninfoOption *parts = PQconninfoParse(conn->options.url, &words);
    PQfreemem(words);
    if (parts == NULL) {
        return error_set(err, ERROR_CONFIG, "the postgres url cannot be parsed");
    }
    const char *given = "";
    for (PQconninfoOption *part = parts; part->keyword != NULL; part++) {
        if (strcmp(part->keyword, "options") == 0 && part->val != NULL) {
            given = part->val;
        }
    }
    // jit: a generic plan over unnest() is compiled again for each batch, at more than the batch
    // costs. Isolation and zone: the database, or the role, may have others as their default (an
    // application's may); our statements count on seeing what was committed before each of them.
    int len = snprintf(
        out, SERVER_OPTIONS_SIZE,
        "%s -c statement_timeout=%d -c jit=off -c default_transaction_isolation=read\\ committed"
        " -c TimeZone=UTC %s",
        given, conn->options.statement_timeout_ms,
        conn->options.server_options != NULL ? conn->options.server_options : "");
    PQconninfoFree(parts);
    if (len < 0 || len >= SERVER_OPTIONS_SIZE) {
        return error_set(err, ERROR_CONFIG, "the postgres url's options are too long");
    }
    return true;
}

// hosts NULL: those of the url.
static bool start_connecting(DbConn *conn, const DbHosts *hosts, Error *err)
{
    char options[SERVER_OPTIONS_SIZE];
    if (!make_server_options(conn, options, err)) {
        return false;
    }
    const char *keywords[] = {
        "dbname", "application_name", "client_encoding", "options", "host", "hostaddr", "port",
        NULL};
    const char *values[] = {
        conn->options.url, conn->options.application_name, "UTF8", options, NULL, NULL, NULL, NULL};
    if (hosts != NULL) {
        values[4] = hosts->host;
        values[5] = hosts->hostaddr;
        values[6] = hosts->port;
    }
    conn->pg = PQconnectStartParams(keywords, values, 1);
    pipeline_init(&conn->line);
    conn->state = CONN_CONNECTING;
    if (conn->pg == NULL || PQstatus(conn->pg) == CONNECTION_BAD) {
        return db_error_connection(conn->pg, "connect", err);
    }
    start_timer(conn, CONNECT_TIMEOUT_MS);
    return watch(conn, UV_WRITABLE, err);
}

static void on_looked_up(void *ctx, const DbHosts *hosts, const Error *unknown)
{
    DbConn *conn = ctx;
    Error err = {0};
    conn->lookup = NULL;
    if (hosts == NULL) {
        lose(conn, unknown);
    } else if (!start_connecting(conn, hosts, &err)) {
        lose(conn, &err);
    }
}

static void try_to_connect(DbConn *conn)
{
    Error err = {0};
    conn->lookup = db_lookup_start(conn->loop, conn->options.url, on_looked_up, conn);
    if (conn->lookup != NULL) {
        conn->state = CONN_LOOKING_UP;
        start_timer(conn, CONNECT_TIMEOUT_MS);
    } else if (!start_connecting(conn, NULL, &err)) {
        lose(conn, &err);
    }
}

static void ignore_notice(void *ctx, const char *message)
{
    (void)ctx;
    (void)message;
}

static bool finish_connecting(DbConn *conn, Error *err)
{
    PQsetNoticeProcessor(conn->pg, ignore_notice, NULL);
    if (PQsetnonblocking(conn->pg, 1) != 0 || PQenterPipelineMode(conn->pg) != 1) {
        return db_error_connection(conn->pg, "pipeline mode", err);
    }
    uv_timer_stop(&conn->timer);
    conn->state = CONN_IDLE;
    conn->backoff_ms = BACKOFF_MIN_MS;
    return watch(conn, UV_READABLE, err);
}

static void continue_connecting(DbConn *conn)
{
    // libpq may close this socket and open another, even under the same number: nothing may be
    // registered for it.
    uv_poll_stop(conn->poll);
    conn->poll_events = 0;
    Error err = {0};
    bool ok = true;
    switch (PQconnectPoll(conn->pg)) {
    case PGRES_POLLING_READING:
        ok = watch(conn, UV_READABLE, &err);
        break;
    case PGRES_POLLING_WRITING:
        ok = watch(conn, UV_WRITABLE, &err);
        break;
    case PGRES_POLLING_OK:
        ok = finish_connecting(conn, &err);
        break;
    default:
        ok = db_error_connection(conn->pg, "connect", &err);
        break;
    }
    if (!ok) {
        lose(conn, &err);
    } else if (conn->state == CONN_IDLE) {
        conn->events.live(conn->ctx, conn);
    }
}

static void time_out(DbConn *conn)
{
    Error err = {0};
    switch (conn->state) {
    case CONN_WAITING:
        try_to_connect(conn);
        return;
    case CONN_LOOKING_UP:
        error_set(
            &err, ERROR_TRANSIENT, "connect: the DNS did not answer in %d ms", CONNECT_TIMEOUT_MS);
        break;
    case CONN_CONNECTING:
        error_set(&err, ERROR_TRANSIENT, "connect: no answer in %d ms", CONNECT_TIMEOUT_MS);
        break;
    case CONN_BUSY:
        error_set(
            &err, ERROR_TRANSIENT, "postgres did not answer in %d ms",
            conn->options.answer_timeout_ms);
        break;
    case CONN_BROKEN:
        err = conn->broken;
        break;
    case CONN_IDLE:
    case CONN_CLOSED:
        return;
    }
    lose(conn, &err);
}

static void on_timer(uv_timer_t *timer)
{
    time_out(timer->data);
}

// ---- sending and receiving ----

// Writes what it can; waits for the socket to take the rest.
static bool flush(DbConn *conn, Error *err)
{
    int left = PQflush(conn->pg);
    if (left < 0) {
        return db_error_connection(conn->pg, "send", err);
    }
    return watch(conn, left > 0 ? UV_READABLE | UV_WRITABLE : UV_READABLE, err);
}

// The loop reports it: no callback runs from inside a send. libpq may have closed the socket,
// and libuv aborts when it is to poll one that is closed (poll_error_test).
static void break_off(DbConn *conn, const Error *err)
{
    unwatch(conn);
    conn->broken = *err;
    conn->state = CONN_BROKEN;
    start_timer(conn, 0);
}

bool db_conn_send(DbConn *conn, DbTxn *txn, Error *err)
{
    assert(conn->state == CONN_IDLE);
    if (!pipeline_send(&conn->line, conn->pg, txn, err) || !flush(conn, err)) {
        // Half a pipeline may stand in the buffer: only a new connection is known to be clean.
        break_off(conn, err);
        return false;
    }
    conn->txn = txn;
    conn->state = CONN_BUSY;
    start_timer(conn, conn->options.answer_timeout_ms);
    return true;
}

// The last thing done in a loop callback: the receiver may send again or close.
static void finish_txn(DbConn *conn)
{
    uv_timer_stop(&conn->timer);
    DbTxn *txn = take_txn(conn);
    Error err;
    bool ok = pipeline_finish(&conn->line, &err);
    conn->state = CONN_IDLE;
    if (conn->line.stale) {
        break_off(conn, &err);
    }
    conn->events.answered(conn->ctx, conn, txn, ok ? NULL : &err);
}

static void lose_socket(DbConn *conn)
{
    Error err;
    db_error_connection(conn->pg, "connection lost", &err);
    lose(conn, &err);
}

static void tell_notified(DbConn *conn)
{
    for (PGnotify *said = PQnotifies(conn->pg); said != NULL; said = PQnotifies(conn->pg)) {
        if (conn->events.notified != NULL) {
            conn->events.notified(conn->ctx, conn, str_from(said->extra));
        }
        PQfreemem(said);
    }
}

static void serve(DbConn *conn)
{
    if (!PQconsumeInput(conn->pg)) {
        lose_socket(conn);
        return;
    }
    Progress progress = conn->txn != NULL ? pipeline_read(&conn->line, conn->pg) : PROGRESS_WAIT;
    tell_notified(conn); // behind the answers: libpq parses no further than one that is not taken
    Error err = {0};
    if (progress == PROGRESS_DONE) {
        finish_txn(conn);
    } else if (progress == PROGRESS_LOST || PQstatus(conn->pg) == CONNECTION_BAD) {
        lose_socket(conn);
    } else if (!flush(conn, &err)) {
        lose(conn, &err);
    }
}

// libpq finds out by itself what became of the socket: its next call reports a bad status. But
// libuv stops a handle that it reports an error on, and when the last answer of a killed server was
// still to be read, that call succeeds: without a new start the end that follows would never be
// seen. (poll_error_test)
static void on_poll_event(uv_poll_t *poll, int status, int events)
{
    (void)events;
    DbConn *conn = poll->data;
    if (status < 0) {
        uv_poll_start(poll, conn->poll_events, on_poll_event);
    }
    if (conn->state == CONN_CONNECTING) {
        continue_connecting(conn);
    } else if (db_conn_live(conn)) {
        serve(conn);
    }
}
