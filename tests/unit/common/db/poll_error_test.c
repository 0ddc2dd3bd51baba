// SPDX-License-Identifier: Apache-2.0
// A server that is killed sends its last words and then a reset. When both have arrived before the
// loop looks, libuv reports one error event and stops the handle: the words are read, the end
// behind them must be seen all the same. The server here is a socket of the test, so that the order
// of things is not left to chance.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/db/db.h"

static const DbStatement ANY = {"any", "SELECT 1"};
static const DbStatement LONG = {"long", "SELECT $1::text"};

enum { GIVE_UP_MS = 5000, STATEMENT_MS = 60000 };

typedef struct Server {
    uv_loop_t loop;
    int listener;
    int peer;
    bool answered;
    Error err;
} Server;

static int listen_on_loopback(int *ret_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    *ret_port = ntohs(address.sin_port);
    return fd;
}

static void run_until(Server *server, DbPool *pool, bool (*done)(Server *server, DbPool *pool))
{
    uint64_t end = uv_now(&server->loop) + GIVE_UP_MS;
    while (!done(server, pool) && uv_now(&server->loop) < end) {
        uv_run(&server->loop, UV_RUN_NOWAIT);
        uv_sleep(1);
        uv_update_time(&server->loop);
    }
    assert_true(done(server, pool));
}

// Takes the client and its start-up message, lets it in.
static bool client_is_in(Server *server, DbPool *pool)
{
    if (server->peer < 0) {
        server->peer = accept(server->listener, NULL, NULL);
    }
    char startup[1024];
    if (server->peer >= 0 && recv(server->peer, startup, sizeof startup, MSG_DONTWAIT) > 0) {
        static const char welcome[] = "R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I";
        assert_int_equal(
            send(server->peer, welcome, sizeof welcome - 1, 0), (ssize_t)sizeof welcome - 1);
    }
    return db_pool_ready(pool);
}

static bool transaction_has_arrived(Server *server, DbPool *pool)
{
    (void)pool;
    char first;
    return recv(server->peer, &first, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
}

// What was not read makes the close a reset.
static void die(Server *server)
{
    static const char words[] = "E\0\0\0\x1dSFATAL\0C57P01\0Mkilled\0\0\0";
    enum { SIZE = 1 + 0x1d };
    assert_int_equal(send(server->peer, words, SIZE, 0), SIZE);
    close(server->peer);
    close(server->listener); // and does not come back
}

static void on_done(void *ctx, DbTxn *txn, const Error *err)
{
    (void)txn;
    Server *server = ctx;
    server->answered = true;
    assert_non_null(err);
    server->err = *err;
}

static bool transaction_is_answered(Server *server, DbPool *pool)
{
    (void)pool;
    return server->answered;
}

static DbPool *connect_to(Server *server)
{
    uv_loop_init(&server->loop);
    int port = 0;
    server->listener = listen_on_loopback(&port);
    char url[160];
    snprintf(
        url, sizeof url,
        "host=127.0.0.1 port=%d user=u dbname=d sslmode=disable gssencmode=disable", port);
    DbPool *pool = db_pool_new(
        &server->loop,
        &(DbPoolOptions){.url = url, .connections = 1, .statement_timeout_ms = STATEMENT_MS});
    run_until(server, pool, client_is_in);
    return pool;
}

static void close_all(Server *server, DbPool *pool)
{
    db_pool_close(pool, NULL, NULL);
    uv_run(&server->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&server->loop), 0);
}

static void a_killed_server_s_last_words_do_not_hide_its_end(void **state)
{
    (void)state;
    Server server = {.peer = -1};
    DbPool *pool = connect_to(&server);
    DbTxn *txn = db_txn_new(pool);
    db_txn_add(txn, &ANY, NULL);
    db_txn_submit(txn, on_done, &server);
    run_until(&server, pool, transaction_has_arrived);
    die(&server);
    run_until(&server, pool, transaction_is_answered);
    assert_int_equal(server.err.kind, ERROR_TRANSIENT);
    assert_false(db_pool_ready(pool));
    close_all(&server, pool);
}

typedef struct Late {
    Server *server;
    DbPool *pool;
} Late;

// More than libpq keeps: it writes in between, and closes the socket at the second failure.
static void on_prepare(uv_prepare_t *prepare)
{
    static char text[100000];
    memset(text, 'x', sizeof text);
    Late *late = prepare->data;
    uv_prepare_stop(prepare);
    DbTxn *txn = db_txn_new(late->pool);
    for (int i = 0; i < 2; i++) {
        db_text(db_txn_add(txn, &LONG, NULL), str_of(text, sizeof text));
    }
    db_txn_submit(txn, on_done, late->server);
}

static bool connection_is_lost(Server *server, DbPool *pool)
{
    (void)server;
    return !db_pool_ready(pool);
}

// The bus hands on what it has just before the loop polls, and libuv aborts when a socket is closed
// that it is to poll. Met by a process that was stopped while its connections were cut.
static void a_send_that_closes_the_socket_just_before_the_poll_is_survived(void **state)
{
    (void)state;
    Server server = {.peer = -1};
    DbPool *pool = connect_to(&server);
    const struct linger reset = {.l_onoff = 1};
    assert_int_equal(setsockopt(server.peer, SOL_SOCKET, SO_LINGER, &reset, sizeof reset), 0);
    die(&server);
    uv_sleep(10);
    uv_run(&server.loop, UV_RUN_NOWAIT); // reads the last words, and not yet the end behind them
    assert_true(db_pool_ready(pool));
    Late late = {&server, pool};
    uv_prepare_t prepare;
    uv_prepare_init(&server.loop, &prepare);
    prepare.data = &late;
    uv_prepare_start(&prepare, on_prepare);
    uv_run(&server.loop, UV_RUN_NOWAIT);
    uv_close((uv_handle_t *)&prepare, NULL);
    run_until(&server, pool, connection_is_lost);
    close_all(&server, pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_killed_server_s_last_words_do_not_hide_its_end),
        cmocka_unit_test(a_send_that_closes_the_socket_just_before_the_poll_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
