// SPDX-License-Identifier: Apache-2.0
// A link over TLS, through a relay that can hold back the rest of what it forwards.
#include <arpa/inet.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "common/bus/jetstream/link.h"
#include "tests/unit/common/bus/bus_tools.h"

enum { HOLD_MS = 1000, GAP_MS = 500, LARGE = 200 * 1024, MANY = 40 };

typedef struct Relay {
    int listener;
    struct sockaddr_in server;
    atomic_bool holds; // the next piece from the server comes in two, HOLD_MS apart
    atomic_bool held;
    int to_client, to_server;
    uv_thread_t thread;
} Relay;

typedef struct Client {
    Rig rig;
    Server server;
    Relay relay;
    Link *link;
    uv_timer_t beat;
    uint64_t beaten_ms, gap_ms; // between two beats of the loop, the longest
    size_t heard, bytes;
} Client;

static Client client;

// ---- the relay ----

static bool forward(Relay *relay, int from, int to, bool to_client)
{
    char piece[16 * 1024];
    ssize_t got = recv(from, piece, sizeof piece, 0);
    size_t first = got > 0 ? (size_t)got : 0;
    if (to_client && got > 8 && atomic_load(&relay->holds)) {
        first = 8; // a record's header, and a little
        atomic_store(&relay->holds, false);
        send(to, piece, first, MSG_NOSIGNAL);
        uv_sleep(HOLD_MS);
        atomic_store(&relay->held, true);
        return send(to, piece + first, (size_t)got - first, MSG_NOSIGNAL) > 0;
    }
    return got > 0 && send(to, piece, first, MSG_NOSIGNAL) == got;
}

static void forward_all(Relay *relay, int from, int to, bool to_client)
{
    while (forward(relay, from, to, to_client)) {
    }
    shutdown(from, SHUT_RDWR);
    shutdown(to, SHUT_RDWR);
}

static void relay_answers(void *arg)
{
    Relay *relay = arg;
    forward_all(relay, relay->to_server, relay->to_client, true);
}

static void relay_one(void *arg)
{
    Relay *relay = arg;
    uv_thread_t answers;
    relay->to_client = accept(relay->listener, NULL, NULL);
    relay->to_server = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(relay->to_server, (struct sockaddr *)&relay->server, sizeof relay->server) == 0 &&
        uv_thread_create(&answers, relay_answers, relay) == 0) {
        forward_all(relay, relay->to_client, relay->to_server, false);
        uv_thread_join(&answers);
    }
    close(relay->to_client);
    close(relay->to_server);
}

static void start_relay(Relay *relay, const char *server_port, char url[64])
{
    struct sockaddr_in here = {.sin_family = AF_INET};
    socklen_t size = sizeof here;
    uv_ip4_addr("127.0.0.1", (int)strtol(server_port, NULL, 10), &relay->server);
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    relay->listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(relay->listener, (struct sockaddr *)&here, sizeof here), 0);
    assert_int_equal(listen(relay->listener, 1), 0);
    assert_int_equal(getsockname(relay->listener, (struct sockaddr *)&here, &size), 0);
    snprintf(url, 64, "tls://127.0.0.1:%u", (unsigned)ntohs(here.sin_port));
    assert_int_equal(uv_thread_create(&relay->thread, relay_one, relay), 0);
}

// ---- the server and the link ----

static void make_certificate(Server *server)
{
    char command[512];
    snprintf(
        command, sizeof command,
        "cd %s && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes "
        "-keyout key.pem -out cert.pem -days 2 -subj /CN=127.0.0.1 "
        "-addext subjectAltName=IP:127.0.0.1 2>/dev/null",
        server->folder);
    run_program("sh", "-c", command, NULL);
    snprintf(server->config, sizeof server->config, "%s/server.conf", server->folder);
    FILE *file = fopen(server->config, "w");
    assert_non_null(file);
    fprintf(
        file, "tls { cert_file: \"%s/cert.pem\", key_file: \"%s/key.pem\" }\n", server->folder,
        server->folder);
    fclose(file);
    snprintf(command, sizeof command, "%s/cert.pem", server->folder);
    assert_int_equal(setenv("SSL_CERT_FILE", command, 1), 0); // what nats.c trusts
}

static void drop_message(void *ctx, natsMsg *message, unsigned breaks)
{
    (void)ctx;
    (void)breaks;
    natsMsg_Destroy(message);
}

static void ignore_state(void *ctx, bool connected)
{
    (void)ctx;
    (void)connected;
}

static void note_heard(void *ctx, natsMsg *message)
{
    Client *c = ctx;
    c->heard++;
    c->bytes += (size_t)natsMsg_GetDataLength(message);
    natsMsg_Destroy(message);
}

static void on_client_beat(uv_timer_t *timer)
{
    Client *c = timer->data;
    uint64_t now_ms = uv_hrtime() / 1000000;
    uint64_t gap_ms = c->beaten_ms > 0 ? now_ms - c->beaten_ms : 0;
    c->gap_ms = gap_ms > c->gap_ms ? gap_ms : c->gap_ms;
    c->beaten_ms = now_ms;
}

static int open_client(void **state)
{
    (void)state;
    static const LinkHandlers handlers = {
        .on_message = drop_message, .on_state = ignore_state, .on_heard = note_heard};
    char url[64];
    memset(&client, 0, sizeof client);
    server_init(&client.server);
    make_certificate(&client.server);
    server_start(&client.server);
    uv_sleep(300); // the relay connects once
    start_relay(&client.relay, client.server.port, url);
    rig_open(&client.rig, NULL);
    LinkOptions options = {.url = url, .name = "test", .inbox_prefix = "_INBOX.stentor-test"};
    client.link = link_open(&client.rig.loop, &options, &handlers, &client);
    uv_timer_init(&client.rig.loop, &client.beat);
    client.beat.data = &client;
    link_listen(client.link, "live.>");
    WAIT(&client.rig, link_connected(client.link));
    uv_timer_start(&client.beat, on_client_beat, 10, 10);
    return 0;
}

static int close_client(void **state)
{
    (void)state;
    client.rig.done = false;
    link_close(client.link, on_rig_done, &client.rig);
    uv_close((uv_handle_t *)&client.beat, NULL);
    WAIT_FLAG(&client.rig, client.rig.done);
    rig_close(&client.rig);
    uv_thread_join(&client.relay.thread);
    close(client.relay.listener);
    server_done(&client.server);
    return 0;
}

static void what_is_larger_than_a_record_comes_whole(void **state)
{
    (void)state;
    static char large[LARGE];
    for (int i = 0; i < MANY; i++) {
        assert_true(link_send(client.link, "live.a", NULL, str_of(large, LARGE)));
        uv_run(&client.rig.loop, UV_RUN_NOWAIT);
    }
    WAIT(&client.rig, client.heard == MANY);
    assert_int_equal(client.bytes, (size_t)MANY * LARGE);
    assert_int_equal(link_breaks(client.link), 0);
}

static void the_loop_does_not_wait_for_the_rest_of_a_record(void **state)
{
    (void)state;
    pass_ms(&client.rig, 100);
    client.gap_ms = 0;
    atomic_store(&client.relay.holds, true);
    assert_true(link_send(client.link, "live.a", NULL, STR("in two pieces")));
    WAIT(&client.rig, client.heard == 1);
    assert_true(atomic_load(&client.relay.held));
    pass_ms(&client.rig, 50); // to the next beat
    assert_in_range(client.gap_ms, 1, GAP_MS);
    assert_true(link_send(client.link, "live.a", NULL, STR("in one")));
    WAIT(&client.rig, client.heard == 2);
    assert_int_equal(link_breaks(client.link), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_client, close_client)
    const struct CMUnitTest tests[] = {
        TEST(what_is_larger_than_a_record_comes_whole),
        TEST(the_loop_does_not_wait_for_the_rest_of_a_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
