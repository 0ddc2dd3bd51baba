// SPDX-License-Identifier: Apache-2.0
// The stream here republishes nothing, so that a test decides what is heard and what is not.
#include "common/base/states/states.h"
#include "services/gateway/live/status_hub.h"
#include "tests/unit/common/bus/bus_tools.h"

enum { SEEN_MAX = 32, TICKS = 10 };

static Rig rig;
static Server server;
static Bus *other;

static struct {
    uint64_t at[SEEN_MAX];
    size_t count;
    size_t lost;
    bool ready;
} seen;

static void on_status(void *ctx, const BusMessage *message, uint64_t sequence)
{
    (void)ctx;
    assert_true(str_ends(message->subject, STR(".status.acme.email.sent")));
    assert_true(seen.count < SEEN_MAX);
    seen.at[seen.count++] = sequence;
}

static void on_ready(void *ctx)
{
    (void)ctx;
    seen.ready = true;
}

static void on_lost(void *ctx)
{
    (void)ctx;
    seen.lost++;
}

static StatusHub *hub;

static int open_hub(void **state)
{
    static const StatusHubHandlers handlers = {on_status, on_ready, on_lost};
    (void)state;
    memset(&seen, 0, sizeof seen);
    server_init(&server);
    server_start(&server);
    rig_open(&rig, NULL);
    rig.bus = rig_bus(&rig, server.url, "stentor-gateway", NULL);
    other = rig_bus(&rig, server.url, "stentor-other", NULL);
    rig_ask(
        &rig, "$JS.API.STREAM.CREATE.STATUS",
        "{\"name\":\"STATUS\",\"subjects\":[\"ntf.status.>\"],\"storage\":\"memory\"}");
    hub = status_hub_new(rig.bus, &handlers, NULL);
    status_hub_want(hub, true);
    WAIT_FLAG(&rig, seen.ready);
    pass_ms(&rig, 50); // the subscription is there
    return 0;
}

static int close_hub(void **state)
{
    (void)state;
    rig.done = false;
    status_hub_stop(hub, on_rig_done, &rig);
    WAIT_FLAG(&rig, rig.done);
    rig_close_bus(&rig, other);
    rig_close(&rig);
    status_hub_free(hub);
    server_done(&server);
    return 0;
}

static void store(int count)
{
    static int ids;
    char prefix[16];
    snprintf(prefix, sizeof prefix, "h%d-", ids++);
    publish_many(&rig, "ntf.status.acme.email.sent", prefix, count);
}

// As JetStream republishes it.
static void say(const char *sequence)
{
    BusHeader header = {"Nats-Sequence", str_from(sequence)};
    assert_true(bus_send_event(
        other, &(BusOut){
                   .subject = "live.status.acme.email.sent",
                   .event_id = STR("id"),
                   .payload = STR("heard"),
                   .headers = &header,
                   .header_count = 1}));
}

static void expect_up_to(uint64_t last)
{
    WAIT(&rig, seen.count == last);
    for (uint64_t i = 0; i < last; i++) {
        assert_int_equal(seen.at[i], i + 1);
    }
    assert_int_equal(status_hub_position(hub), last);
}

static void what_is_heard_in_order_is_read_from_nowhere(void **state)
{
    (void)state;
    store(2);
    say("1");
    say("2");
    say("2"); // once more
    expect_up_to(2);
    assert_int_equal(status_hub_filled_total(hub), 0);
}

static void what_was_not_heard_is_read_and_comes_before_what_was(void **state)
{
    (void)state;
    store(4);
    say("1");
    expect_up_to(1);
    say("4");
    expect_up_to(4);
    assert_int_equal(status_hub_filled_total(hub), 3);
    store(1);
    say("5"); // and it is heard again
    expect_up_to(5);
    assert_int_equal(seen.lost, 0);
}

static void a_loss_that_nothing_follows_shows_by_the_end_of_the_stream(void **state)
{
    (void)state;
    store(3);
    for (int i = 0; i < TICKS; i++) {
        status_hub_tick(hub);
    }
    pass_ms(&rig, 100); // the end is known
    assert_int_equal(seen.count, 0);
    status_hub_tick(hub);
    expect_up_to(3);
}

static void too_much_is_lost_and_said(void **state)
{
    (void)state;
    say("20000");
    WAIT(&rig, seen.lost == 1);
    assert_int_equal(status_hub_position(hub), 20000);
    assert_int_equal(seen.count, 0);
    say("20001");
    WAIT(&rig, seen.count == 1);
}

static void while_none_wants_it_nothing_is_heard(void **state)
{
    (void)state;
    status_hub_want(hub, false);
    store(1);
    say("1");
    pass_ms(&rig, 100);
    assert_int_equal(seen.count, 0);
    seen.ready = false;
    status_hub_want(hub, true);
    WAIT_FLAG(&rig, seen.ready);
    assert_int_equal(status_hub_position(hub), 1); // from now on
    store(1);
    pass_ms(&rig, 50);
    say("2");
    WAIT(&rig, seen.count == 1);
    assert_int_equal(seen.at[0], 2);
}

static void what_has_no_sequence_is_none(void **state)
{
    (void)state;
    say("x");
    say("0");
    say("-1");
    pass_ms(&rig, 100);
    assert_int_equal(seen.count, 0);
}

// The diagram of status_hub.h.
static void the_moves_are_those_of_the_diagram(void **state)
{
    (void)state;
    static const bool allowed[HUB_STATE_COUNT][HUB_STATE_COUNT] = {
        [HUB_OFF] = {[HUB_ASKING] = true},
        [HUB_ASKING] = {[HUB_ON] = true, [HUB_OFF] = true},
        [HUB_ON] = {[HUB_FILLING] = true, [HUB_OFF] = true},
        [HUB_FILLING] = {[HUB_ON] = true, [HUB_OFF] = true},
    };
#ifdef STENTOR_STRICT_STATES
    states_forgive(true);
#endif
    for (int from = 0; from < HUB_STATE_COUNT; from++) {
        for (int to = 0; to < HUB_STATE_COUNT; to++) {
            HubState is = (HubState)from;
            bool moved = hub_state_move(&is, (HubState)to);
            assert_int_equal(moved, allowed[from][to]);
            assert_int_equal(is, moved ? to : from);
        }
    }
#ifdef STENTOR_STRICT_STATES
    states_forgive(false);
#endif
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_hub, close_hub)
    const struct CMUnitTest tests[] = {
        TEST(what_is_heard_in_order_is_read_from_nowhere),
        TEST(what_was_not_heard_is_read_and_comes_before_what_was),
        TEST(a_loss_that_nothing_follows_shows_by_the_end_of_the_stream),
        TEST(too_much_is_lost_and_said),
        TEST(while_none_wants_it_nothing_is_heard),
        TEST(what_has_no_sequence_is_none),
        cmocka_unit_test(the_moves_are_those_of_the_diagram),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
