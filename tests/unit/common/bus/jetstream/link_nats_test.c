// SPDX-License-Identifier: Apache-2.0
// How a link leaves (bus_nats_test and worker_nats_test have the rest of what it does).
#include "common/bus/jetstream/link.h"
#include "tests/unit/common/bus/bus_tools.h"

enum { STAYS_MS = 200, LIMIT_MS = 3000, TRIES = 5, REST_MS = 400, BURST = 5000 };

static Rig rig;

static int open_rig(void **state)
{
    (void)state;
    rig_open(&rig, NULL);
    return 0;
}

static int close_rig(void **state)
{
    (void)state;
    rig_close(&rig);
    return 0;
}

// Stands for a server that works off a pull request: one delivery after the other to the link's
// inbox, until nothing is subscribed there.
typedef struct Sender {
    natsConnection *nc;
    char subject[160];
    uint64_t gone_ns; // when the subscription was; 0: it outlived the sender's patience
} Sender;

static void send_until_gone(void *arg)
{
    Sender *sender = arg;
    uint64_t end_ns = uv_hrtime() + LIMIT_MS * UINT64_C(1000000);
    bool was_there = false; // the subscription; the loop sends it while the sender begins
    while (sender->gone_ns == 0 && uv_hrtime() < end_ns) {
        natsMsg *reply = NULL;
        natsStatus s = natsConnection_RequestString(&reply, sender->nc, sender->subject, "", 1);
        natsMsg_Destroy(reply);
        was_there = was_there || s == NATS_TIMEOUT;
        sender->gone_ns = was_there && s == NATS_NO_RESPONDERS ? uv_hrtime() : 0;
    }
    nats_ReleaseThreadMemory();
}

static void count_message(void *ctx, natsMsg *message, unsigned breaks)
{
    (void)breaks;
    ++*(size_t *)ctx;
    natsMsg_Destroy(message);
}

static void ignore_state(void *ctx, bool connected)
{
    (void)ctx;
    (void)connected;
}

// How long its inbox is listened to after the link was asked to close, with deliveries coming.
static uint64_t stays_ms(bool asks)
{
    static const LinkHandlers handlers = {.on_message = count_message, .on_state = ignore_state};
    const char *url = getenv("STENTOR_TEST_NATS_URL");
    LinkOptions options = {.url = url, .name = "test", .inbox_prefix = "_INBOX.stentor-test"};
    Sender sender = {0};
    size_t received = 0;
    uv_thread_t thread;
    Link *link = link_open(&rig.loop, &options, &handlers, &received);
    WAIT(&rig, link_connected(link));
    link_port(link, "w0");
    if (asks) {
        link_ask_at_close(link, "$JS.API.CONSUMER.INFO.REQUEST_NORMAL.renderer");
    }
    snprintf(sender.subject, sizeof sender.subject, "%s.w0.delivery", link_inbox(link));
    assert_int_equal(natsConnection_ConnectTo(&sender.nc, url), NATS_OK);
    assert_int_equal(uv_thread_create(&thread, send_until_gone, &sender), 0);
    WAIT(&rig, received > 0);
    uint64_t closed_ns = uv_hrtime();
    rig.done = false;
    link_close(link, on_rig_done, &rig);
    WAIT_FLAG(&rig, rig.done);
    uv_thread_join(&thread);
    natsConnection_Destroy(sender.nc);
    assert_true(sender.gone_ns > closed_ns);
    return (sender.gone_ns - closed_ns) / 1000000;
}

// Once the subscription is gone, the server loses the redelivery that it is about to send. (Several
// tries: on a busy machine the sender may be without a processor for as long as quiet lasts.)
static void a_link_that_asks_at_its_close_leaves_when_it_is_quiet(void **state)
{
    (void)state;
    uint64_t longest = 0;
    for (int i = 0; i < TRIES && longest < STAYS_MS; i++) {
        uint64_t stayed = stays_ms(true);
        longest = stayed > longest ? stayed : longest;
    }
    assert_true(longest >= STAYS_MS);
}

static void a_link_that_asks_nothing_leaves_at_once(void **state)
{
    (void)state;
    uint64_t shortest = LIMIT_MS;
    for (int i = 0; i < TRIES && shortest >= STAYS_MS; i++) {
        uint64_t stayed = stays_ms(false);
        shortest = stayed < shortest ? stayed : shortest;
    }
    assert_true(shortest < STAYS_MS);
}

// ---- a link that rests ----

static void publish_one(natsConnection *nc, const Link *link)
{
    char subject[160];
    snprintf(subject, sizeof subject, "%s.w0.delivery", link_inbox(link));
    assert_int_equal(natsConnection_PublishString(nc, subject, "event"), NATS_OK);
    assert_int_equal(natsConnection_Flush(nc), NATS_OK);
}

static void a_link_that_rests_reads_what_came_meanwhile_together(void **state)
{
    (void)state;
    static const LinkHandlers handlers = {.on_message = count_message, .on_state = ignore_state};
    const char *url = getenv("STENTOR_TEST_NATS_URL");
    LinkOptions options = {.url = url, .name = "test", .inbox_prefix = "_INBOX.stentor-test"};
    natsConnection *nc = NULL;
    size_t received = 0;
    Link *link = link_open(&rig.loop, &options, &handlers, &received);
    WAIT(&rig, link_connected(link));
    link_port(link, "w0");
    assert_int_equal(natsConnection_ConnectTo(&nc, url), NATS_OK);
    while (received == 0) { // until the server knows the subscription
        publish_one(nc, link);
        pass_ms(&rig, 50);
    }
    received = 0;
    link_rest(link, REST_MS);
    publish_one(nc, link);
    WAIT(&rig, received == 1); // a socket that does not rest yet
    uint64_t since_ns = uv_hrtime();
    publish_one(nc, link);
    publish_one(nc, link);
    WAIT(&rig, received > 1);
    assert_int_equal(received, 3);
    assert_true(uv_hrtime() - since_ns >= REST_MS / 2 * UINT64_C(1000000));
    // Rests again, for so long that the test would fail.
    link_rest(link, 60 * 1000);
    publish_one(nc, link);
    WAIT(&rig, received == 4);
    publish_one(nc, link);
    link_rest(link, 0);
    WAIT(&rig, received == 5);
    natsConnection_Destroy(nc);
    rig.done = false;
    link_close(link, on_rig_done, &rig);
    WAIT_FLAG(&rig, rig.done);
}

// Small messages with many headers, of which a full read brings little.
static void publish_burst(natsConnection *nc, const Link *link)
{
    char subject[160], name[32];
    natsMsg *message = NULL;
    snprintf(subject, sizeof subject, "%s.w0.delivery", link_inbox(link));
    assert_int_equal(natsMsg_Create(&message, subject, NULL, "event", 5), NATS_OK);
    for (int i = 0; i < 8; i++) {
        snprintf(name, sizeof name, "ce-attribute-%d", i);
        assert_int_equal(
            natsMsgHeader_Set(message, name, "a value of some length, as ids are"), NATS_OK);
    }
    for (int i = 0; i < BURST; i++) {
        assert_int_equal(natsConnection_PublishMsg(nc, message), NATS_OK);
    }
    assert_int_equal(natsConnection_Flush(nc), NATS_OK);
    natsMsg_Destroy(message);
}

static void a_link_that_rests_reads_a_burst_as_it_comes(void **state)
{
    (void)state;
    static const LinkHandlers handlers = {.on_message = count_message, .on_state = ignore_state};
    const char *url = getenv("STENTOR_TEST_NATS_URL");
    LinkOptions options = {.url = url, .name = "test", .inbox_prefix = "_INBOX.stentor-test"};
    natsConnection *nc = NULL;
    size_t received = 0;
    Link *link = link_open(&rig.loop, &options, &handlers, &received);
    WAIT(&rig, link_connected(link));
    link_port(link, "w0");
    assert_int_equal(natsConnection_ConnectTo(&nc, url), NATS_OK);
    while (received == 0) {
        publish_one(nc, link);
        pass_ms(&rig, 50);
    }
    received = 0;
    link_rest(link, 1000);
    publish_burst(nc, link);
    uint64_t since_ns = uv_hrtime();
    WAIT(&rig, received == BURST);
    assert_true(uv_hrtime() - since_ns < 5 * UINT64_C(1000000000)); // a rest for each read: 50 s
    natsConnection_Destroy(nc);
    rig.done = false;
    link_close(link, on_rig_done, &rig);
    WAIT_FLAG(&rig, rig.done);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_link_that_asks_at_its_close_leaves_when_it_is_quiet, open_rig, close_rig),
        cmocka_unit_test_setup_teardown(
            a_link_that_asks_nothing_leaves_at_once, open_rig, close_rig),
        cmocka_unit_test_setup_teardown(
            a_link_that_rests_reads_what_came_meanwhile_together, open_rig, close_rig),
        cmocka_unit_test_setup_teardown(
            a_link_that_rests_reads_a_burst_as_it_comes, open_rig, close_rig),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
