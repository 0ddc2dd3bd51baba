// SPDX-License-Identifier: Apache-2.0
// What is heard on core subjects, on a real server.
#include "common/bus/jetstream/listen.h"
#include "tests/unit/common/bus/bus_tools.h"

static Rig rig;
static Server server;

typedef struct Heard {
    size_t count;
    char subject[96], payload[96], header[32];
} Heard;

static int open_rig(void **state)
{
    (void)state;
    server_init(&server);
    server_start(&server);
    rig_open(&rig, NULL);
    rig.bus = rig_bus(&rig, server.url, "stentor-test", NULL);
    return 0;
}

static int close_rig(void **state)
{
    (void)state;
    rig_close(&rig);
    server_done(&server);
    return 0;
}

static void note(void *ctx, const BusMessage *message)
{
    Heard *heard = ctx;
    heard->count++;
    assert_true(str_to_c(message->subject, heard->subject, sizeof heard->subject));
    assert_true(str_to_c(message->payload, heard->payload, sizeof heard->payload));
    (void)str_to_c(bus_message_header(message, "X-Own"), heard->header, sizeof heard->header);
}

static void say(Bus *bus, const char *subject, const char *payload)
{
    BusHeader own = {"X-Own", STR("h")};
    assert_true(bus_send_event(
        bus, &(BusOut){
                 .subject = subject,
                 .event_id = STR("id"),
                 .payload = str_from(payload),
                 .headers = &own,
                 .header_count = 1}));
}

static void each_subject_has_its_own_listener(void **state)
{
    (void)state;
    Heard statuses = {0}, feeds = {0};
    Bus *other = rig_bus(&rig, server.url, "stentor-other", NULL);
    bus_listen(rig.bus, "live.status.>", note, &statuses);
    bus_listen(rig.bus, "live.feed.*", note, &feeds);
    pass_ms(&rig, 50);
    say(other, "live.status.acme.email.sent", "one");
    say(other, "live.feed.acme", "two");
    say(other, "live.other", "three");
    WAIT(&rig, statuses.count == 1 && feeds.count == 1);
    assert_string_equal(statuses.subject, "live.status.acme.email.sent");
    assert_string_equal(statuses.payload, "one");
    assert_string_equal(statuses.header, "h");
    assert_string_equal(feeds.payload, "two");
    bus_unlisten(rig.bus, "live.status.>");
    pass_ms(&rig, 50);
    say(other, "live.status.acme.email.sent", "four");
    say(other, "live.feed.acme", "five");
    WAIT(&rig, feeds.count == 2);
    assert_int_equal(statuses.count, 1);
    bus_listen(rig.bus, "live.status.>", note, &statuses);
    pass_ms(&rig, 50);
    say(other, "live.status.acme.email.sent", "six");
    WAIT(&rig, statuses.count == 2);
    rig_close_bus(&rig, other);
}

static void it_is_heard_again_after_a_lost_connection(void **state)
{
    (void)state;
    Heard heard = {0};
    Bus *other = rig_bus(&rig, server.url, "stentor-other", NULL);
    bus_listen(rig.bus, "live.>", note, &heard);
    server_kill(&server, SIGKILL);
    WAIT(&rig, !bus_connected(other) && !bus_connected(rig.bus));
    server_start(&server);
    WAIT(&rig, bus_connected(other) && bus_connected(rig.bus));
    pass_ms(&rig, 50);
    say(other, "live.a", "again");
    WAIT(&rig, heard.count == 1);
    rig_close_bus(&rig, other);
}

static void what_comes_in_a_flood_is_heard_or_dropped_and_never_kept(void **state)
{
    (void)state;
    enum { MANY = 50000 };
    Heard heard = {0};
    Bus *other = rig_bus(&rig, server.url, "stentor-other", NULL);
    bus_listen(rig.bus, "live.>", note, &heard);
    pass_ms(&rig, 50);
    for (int i = 0; i < MANY; i++) { // the loop does not turn meanwhile
        (void)bus_send(other, "live.flood", NULL, STR("x"));
    }
    say(other, "live.flood", "last");
    size_t before = 0;
    do { // until all of it has come
        before = heard.count;
        pass_ms(&rig, 300);
    } while (heard.count == 0 || heard.count > before);
    assert_in_range(heard.count, 1, MANY + 1);
    say(other, "live.flood", "after");
    WAIT(&rig, heard.count == before + 1);
    assert_string_equal(heard.payload, "after");
    rig_close_bus(&rig, other);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_rig, close_rig)
    const struct CMUnitTest tests[] = {
        TEST(each_subject_has_its_own_listener),
        TEST(it_is_heard_again_after_a_lost_connection),
        TEST(what_comes_in_a_flood_is_heard_or_dropped_and_never_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
