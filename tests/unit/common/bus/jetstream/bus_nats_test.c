// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/common/bus/bus_tools.h"

static Rig rig;

static int open_rig(void **state)
{
    (void)state;
    rig_open(&rig, getenv("STENTOR_TEST_NATS_URL"));
    rig_fresh(&rig, 0);
    return 0;
}

static int close_rig(void **state)
{
    (void)state;
    rig_close(&rig);
    return 0;
}

static void a_publish_is_acknowledged_with_its_sequence(void **state)
{
    (void)state;
    Acks acks = {0};
    publish_id(&rig, "ntf.request.normal.acme", "id-1", "one", &acks);
    WAIT(&rig, acks.stored == 1);
    assert_int_equal(acks.last_sequence, 1);
    assert_int_equal(rig_count(&rig, "REQUEST_NORMAL"), 1);
}

static void the_same_id_is_stored_once(void **state)
{
    (void)state;
    Acks acks = {0};
    publish_id(&rig, "ntf.request.normal.acme", "same", "one", &acks);
    publish_id(&rig, "ntf.request.normal.acme", "same", "one", &acks);
    WAIT(&rig, acks.stored == 2);
    assert_int_equal(acks.duplicates, 1);
    assert_int_equal(bus_stats(rig.bus).duplicates, 1);
    assert_int_equal(acks.last_sequence, 1);
    assert_int_equal(rig_count(&rig, "REQUEST_NORMAL"), 1);
}

static void more_than_the_window_are_all_stored(void **state)
{
    (void)state;
    publish_many(&rig, "ntf.request.low.acme", "w", 10000);
    assert_int_equal(bus_pending(rig.bus), 0);
    assert_int_equal(rig_count(&rig, "REQUEST_LOW"), 10000);
}

static void what_cannot_wait_overtakes_what_can(void **state)
{
    (void)state;
    enum { SLACK = 3000, FEW = 1200 };
    Acks slack = {0}, first = {0};
    BusOut out = {.subject = "ntf.request.low.acme", .payload = STR("x"), .slack = true};
    publish_id(&rig, "ntf.request.normal.acme", "company", "x", &first);
    WAIT(&rig, first.stored == 1);
    for (int i = 0; i < SLACK; i++) {
        bus_publish(rig.bus, &out, on_acks, &slack);
    }
    publish_id(&rig, "ntf.request.normal.acme", "urgent", "x", &first);
    WAIT(&rig, first.stored == 2);
    assert_true(slack.stored < FEW);
    WAIT(&rig, slack.stored == SLACK);
    assert_int_equal(rig_count(&rig, "REQUEST_LOW"), SLACK);
    assert_int_equal(bus_pending(rig.bus), 0);
}

static void no_callback_comes_from_inside_the_call(void **state)
{
    (void)state;
    Acks acks = {0};
    publish_id(&rig, "ntf.request.normal.ac me", "bad", "x", &acks);
    publish_id(&rig, "ntf.request.normal.acme", "good", "x", &acks);
    assert_int_equal(acks.stored + acks.failed, 0);
    WAIT(&rig, acks.stored + acks.failed == 2);
}

static void a_bad_subject_is_permanent(void **state)
{
    (void)state;
    Acks acks = {0};
    publish_id(&rig, "ntf.request\r\nPUB x", "bad", "x", &acks);
    WAIT(&rig, acks.failed == 1);
    assert_int_equal(acks.error.kind, ERROR_PERMANENT);
}

static void a_header_cannot_be_injected(void **state)
{
    (void)state;
    Acks acks = {0};
    publish_id(&rig, "ntf.request.normal.acme", "id\r\nNats-Expected-Stream: OTHER", "x", &acks);
    WAIT(&rig, acks.failed == 1);
    assert_int_equal(acks.error.kind, ERROR_PERMANENT);
    assert_int_equal(rig_count(&rig, "REQUEST_NORMAL"), 0);
}

static void a_payload_above_the_limit_is_permanent(void **state)
{
    (void)state;
    Acks acks = {0};
    size_t len = 901 * 1024;
    char *payload = malloc(len);
    memset(payload, 'x', len);
    BusOut out = {.subject = "ntf.request.normal.acme", .payload = str_of(payload, len)};
    bus_publish(rig.bus, &out, on_acks, &acks);
    free(payload);
    WAIT(&rig, acks.failed == 1);
    assert_int_equal(acks.error.kind, ERROR_PERMANENT);
}

static void a_subject_that_no_stream_takes_fails_at_the_deadline(void **state)
{
    (void)state;
    Error err;
    Acks acks = {0};
    BusOptions options = {
        .url = getenv("STENTOR_TEST_NATS_URL"),
        .service = "stentor-test",
        .publish_deadline_ms = 700};
    Bus *bus = bus_open(&rig.loop, &options, &err);
    WAIT(&rig, bus_connected(bus));
    bus_publish(
        bus, &(BusOut){.subject = "subject.of.no.stream", .payload = STR("x")}, on_acks, &acks);
    WAIT(&rig, acks.failed == 1);
    assert_int_equal(acks.error.kind, ERROR_TRANSIENT);
    assert_non_null(strstr(acks.error.text, "no stream has the subject 'subject.of.no.stream'"));
    rig_close_bus(&rig, bus);
}

static void a_full_stream_refuses_until_there_is_room(void **state)
{
    (void)state;
    Acks acks = {0};
    rig_ask(
        &rig, "$JS.API.STREAM.CREATE.TINY",
        "{\"name\":\"TINY\",\"subjects\":[\"tiny\"],\"max_msgs\":1,\"discard\":\"new\"}");
    publish_id(&rig, "tiny", "t1", "x", &acks);
    WAIT(&rig, acks.stored == 1);
    publish_id(&rig, "tiny", "t2", "x", &acks);
    pass_ms(&rig, 600);
    assert_int_equal(acks.stored + acks.failed, 1);
    rig_ask(&rig, "$JS.API.STREAM.PURGE.TINY", "");
    WAIT(&rig, acks.stored == 2);
    rig_ask(&rig, "$JS.API.STREAM.DELETE.TINY", "");
}

static void closing_cancels_what_is_pending(void **state)
{
    (void)state;
    Error err;
    Acks acks = {0};
    BusOptions options = {.url = "nats://127.0.0.1:1", .service = "stentor-test"};
    Bus *bus = bus_open(&rig.loop, &options, &err);
    bus_publish(
        bus, &(BusOut){.subject = "ntf.request.low.acme", .payload = STR("x")}, on_acks, &acks);
    pass_ms(&rig, 50);
    rig_close_bus(&rig, bus);
    assert_int_equal(acks.failed, 1);
    assert_int_equal(acks.error.kind, ERROR_CANCELLED);
}

static void an_unfit_service_name_is_refused(void **state)
{
    (void)state;
    Error err;
    assert_null(bus_open(&rig.loop, &(BusOptions){.url = "nats://x", .service = "a.b"}, &err));
    assert_int_equal(err.kind, ERROR_CONFIG);
    assert_null(bus_open(&rig.loop, &(BusOptions){.url = "", .service = "a"}, &err));
}

static void a_password_that_nats_c_cannot_send_is_refused(void **state)
{
    (void)state;
    Error err;
    BusOptions options = {
        .url = "nats://x", .service = "a", .user = "a", .password = "with\"quote"};
    assert_null(bus_open(&rig.loop, &options, &err));
    assert_int_equal(err.kind, ERROR_CONFIG);
}

static void note_change(void *ctx, bool connected)
{
    int *changes = ctx;
    changes[connected ? 1 : 0]++;
}

// kill -9 in the middle of a thousand: each is stored, and none twice.
static void publishes_survive_a_killed_server(void **state)
{
    (void)state;
    Rig own;
    Server server;
    Acks acks = {0};
    int changes[2] = {0};
    server_init(&server);
    server_start(&server);
    rig_open(&own, server.url);
    rig_apply(&own, 0);
    bus_watch(own.bus, note_change, changes);
    for (int i = 0; i < 5000; i++) {
        char id[32];
        snprintf(id, sizeof id, "k%d", i);
        publish_id(&own, "ntf.request.high.acme", id, "x", &acks);
    }
    WAIT(&own, acks.stored > 100);
    server_kill(&server, SIGKILL);
    pass_ms(&own, 300);
    assert_false(bus_connected(own.bus));
    server_start(&server);
    WAIT(&own, acks.stored + acks.failed == 5000);
    assert_int_equal(acks.failed, 0);
    assert_int_equal(rig_count(&own, "REQUEST_HIGH"), 5000);
    assert_int_equal(changes[0], 1);
    assert_int_equal(changes[1], 1);
    rig_close(&own);
    server_done(&server);
}

static void a_frozen_server_fails_publishes_at_their_deadline(void **state)
{
    (void)state;
    Rig own;
    Server server;
    Acks acks = {0};
    Error err;
    server_init(&server);
    server_start(&server);
    rig_open(&own, NULL);
    BusOptions options = {.url = server.url, .service = "stentor-test", .publish_deadline_ms = 800};
    own.bus = bus_open(&own.loop, &options, &err);
    WAIT(&own, bus_connected(own.bus));
    rig_apply(&own, 0);
    server_freeze(&server);
    publish_id(&own, "ntf.request.high.acme", "frozen", "x", &acks);
    WAIT(&own, acks.failed == 1);
    assert_int_equal(acks.error.kind, ERROR_TRANSIENT);
    kill(server.pid, SIGCONT);
    publish_id(&own, "ntf.request.high.acme", "frozen", "x", &acks);
    WAIT(&own, acks.stored == 1);
    rig_close(&own);
    server_done(&server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_publish_is_acknowledged_with_its_sequence, open_rig, close_rig),
        cmocka_unit_test_setup_teardown(the_same_id_is_stored_once, open_rig, close_rig),
        cmocka_unit_test_setup_teardown(more_than_the_window_are_all_stored, open_rig, close_rig),
        cmocka_unit_test_setup_teardown(what_cannot_wait_overtakes_what_can, open_rig, close_rig),
        cmocka_unit_test_setup_teardown(
            no_callback_comes_from_inside_the_call, open_rig, close_rig),
        cmocka_unit_test_setup_teardown(a_bad_subject_is_permanent, open_rig, close_rig),
        cmocka_unit_test_setup_teardown(a_header_cannot_be_injected, open_rig, close_rig),
        cmocka_unit_test_setup_teardown(
            a_payload_above_the_limit_is_permanent, open_rig, close_rig),
        cmocka_unit_test_setup_teardown(
            a_subject_that_no_stream_takes_fails_at_the_deadline, open_rig, close_rig),
        cmocka_unit_test_setup_teardown(
            a_full_stream_refuses_until_there_is_room, open_rig, close_rig),
        cmocka_unit_test_setup_teardown(closing_cancels_what_is_pending, open_rig, close_rig),
        cmocka_unit_test_setup_teardown(an_unfit_service_name_is_refused, open_rig, close_rig),
        cmocka_unit_test_setup_teardown(
            a_password_that_nats_c_cannot_send_is_refused, open_rig, close_rig),
        cmocka_unit_test(publishes_survive_a_killed_server),
        cmocka_unit_test(a_frozen_server_fails_publishes_at_their_deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
