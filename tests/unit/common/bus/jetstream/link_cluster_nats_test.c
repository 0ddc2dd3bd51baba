// SPDX-License-Identifier: Apache-2.0
// A link to a cluster of two servers, one of which its options name.
#include "common/bus/jetstream/link.h"
#include "tests/unit/common/bus/bus_tools.h"

enum { TICK_MS = 50, PIECE = 512 * 1024 };

typedef struct Cluster {
    Rig rig;
    Server servers[2];
    uv_timer_t tick;
    Link *link;
    size_t heard, losses;
} Cluster;

static Cluster cluster;

// ---- servers ----

static void write_config(Server *server, const char *route, const char *other_route)
{
    snprintf(server->config, sizeof server->config, "%s/server.conf", server->folder);
    FILE *file = fopen(server->config, "w");
    assert_non_null(file);
    fprintf(
        file,
        "server_name: \"s%s\"\nlame_duck_grace_period: \"1s\"\nlame_duck_duration: \"30s\"\n"
        "cluster { name: test, listen: \"127.0.0.1:%s\", routes: [\"nats://127.0.0.1:%s\"] }\n",
        server->port, route, other_route);
    fclose(file);
}

static bool knows_another(const char *url)
{
    natsConnection *nc = NULL;
    char **found = NULL;
    int count = 0;
    if (natsConnection_ConnectTo(&nc, url) != NATS_OK) {
        return false;
    }
    natsConnection_GetDiscoveredServers(nc, &found, &count);
    for (int i = 0; i < count; i++) {
        free(found[i]);
    }
    free((void *)found);
    natsConnection_Destroy(nc);
    return count > 0;
}

static void start_servers(Server servers[2])
{
    Server routes[2]; // their ports
    for (int i = 0; i < 2; i++) {
        server_init(&servers[i]);
        server_init(&routes[i]);
    }
    for (int i = 0; i < 2; i++) {
        write_config(&servers[i], routes[i].port, routes[1 - i].port);
        server_start(&servers[i]);
    }
    for (int i = 0; i < 100 && !knows_another(servers[0].url); i++) {
        uv_sleep(50);
    }
    assert_true(knows_another(servers[0].url));
    for (int i = 0; i < 2; i++) {
        server_done(&routes[i]);
    }
}

// ---- the link ----

static void drop_message(void *ctx, natsMsg *message, unsigned breaks)
{
    (void)ctx;
    (void)breaks;
    natsMsg_Destroy(message);
}

static void note_state(void *ctx, bool connected)
{
    ((Cluster *)ctx)->losses += connected ? 0 : 1;
}

static void note_heard(void *ctx, natsMsg *message)
{
    ((Cluster *)ctx)->heard++;
    natsMsg_Destroy(message);
}

static void on_tick(uv_timer_t *timer)
{
    link_tick(((Cluster *)timer->data)->link);
}

static int open_cluster(void **state)
{
    (void)state;
    static const LinkHandlers handlers = {
        .on_message = drop_message, .on_state = note_state, .on_heard = note_heard};
    memset(&cluster, 0, sizeof cluster);
    start_servers(cluster.servers);
    rig_open(&cluster.rig, NULL);
    LinkOptions options = {
        .url = cluster.servers[0].url, .name = "test", .inbox_prefix = "_INBOX.stentor-test"};
    cluster.link = link_open(&cluster.rig.loop, &options, &handlers, &cluster);
    uv_timer_init(&cluster.rig.loop, &cluster.tick);
    cluster.tick.data = &cluster;
    uv_timer_start(&cluster.tick, on_tick, TICK_MS, TICK_MS);
    link_listen(cluster.link, "live.>");
    WAIT(&cluster.rig, link_connected(cluster.link));
    return 0;
}

static int close_cluster(void **state)
{
    (void)state;
    cluster.rig.done = false;
    link_close(cluster.link, on_rig_done, &cluster.rig);
    uv_close((uv_handle_t *)&cluster.tick, NULL);
    WAIT_FLAG(&cluster.rig, cluster.rig.done);
    rig_close(&cluster.rig);
    for (int i = 0; i < 2; i++) {
        server_done(&cluster.servers[i]);
    }
    return 0;
}

static void assert_it_hears_itself(void)
{
    size_t before = cluster.heard;
    assert_true(link_send(cluster.link, "live.a", NULL, STR("x")));
    WAIT(&cluster.rig, cluster.heard == before + 1);
}

static void the_other_server_is_taken_when_the_first_one_dies(void **state)
{
    (void)state;
    unsigned breaks = link_breaks(cluster.link);
    assert_it_hears_itself();
    server_kill(&cluster.servers[0], SIGKILL);
    WAIT(&cluster.rig, !link_connected(cluster.link));
    assert_false(link_send(cluster.link, "live.a", NULL, STR("x")));
    WAIT(&cluster.rig, link_connected(cluster.link));
    assert_it_hears_itself();
    assert_int_equal(cluster.losses, 1);
    assert_int_equal(link_breaks(cluster.link), breaks + 1);
}

static void the_other_server_is_taken_when_the_first_one_is_a_lame_duck(void **state)
{
    (void)state;
    assert_it_hears_itself();
    assert_int_equal(kill(cluster.servers[0].pid, SIGUSR2), 0);
    WAIT(&cluster.rig, cluster.losses == 1);
    WAIT(&cluster.rig, link_connected(cluster.link));
    assert_it_hears_itself();
    assert_int_equal(cluster.losses, 1);
}

// Its kernel takes some, the link keeps some, and the rest is refused; then it is left.
static void a_server_that_takes_nothing_is_left(void **state)
{
    (void)state;
    static char piece[PIECE];
    size_t sent = 0, pieces = 2 * (size_t)LINK_UNWRITTEN_MAX / PIECE;
    server_freeze(&cluster.servers[0]);
    uint64_t begun_ms = uv_hrtime() / 1000000;
    while (sent < pieces && link_send(cluster.link, "other", NULL, str_of(piece, PIECE))) {
        sent++;
        uv_run(&cluster.rig.loop, UV_RUN_NOWAIT);
    }
    assert_in_range(sent, (size_t)LINK_UNWRITTEN_MAX / PIECE, pieces - 1);
    assert_in_range(uv_hrtime() / 1000000 - begun_ms, 0, 5000); // no send waited for the server
    WAIT(&cluster.rig, cluster.losses == 1);
    WAIT(&cluster.rig, link_connected(cluster.link));
    assert_it_hears_itself();
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_cluster, close_cluster)
    const struct CMUnitTest tests[] = {
        TEST(the_other_server_is_taken_when_the_first_one_dies),
        TEST(the_other_server_is_taken_when_the_first_one_is_a_lame_duck),
        TEST(a_server_that_takes_nothing_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
