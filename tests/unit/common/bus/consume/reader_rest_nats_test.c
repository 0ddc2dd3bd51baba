// SPDX-License-Identifier: Apache-2.0
// Readers on a bus that rests (bus_rest): a backlog is read as it comes, what comes singly
// together.
#include "common/bus/consume/reader.h"
#include "tests/unit/common/bus/bus_tools.h"

enum { BACKLOG = 4000, REST_MS = 1500 };

static const char sent[] = "ntf.status.acme.email.sent";

static Rig rig;

typedef struct Seen {
    size_t count;
    size_t calls;
    bool caught_up;
} Seen;

static void note_messages(void *ctx, const BusMessage *messages, size_t count)
{
    (void)messages;
    Seen *seen = ctx;
    seen->count += count;
    seen->calls++;
}

static void note_caught_up(void *ctx)
{
    ((Seen *)ctx)->caught_up = true;
}

static void note_failed(void *ctx, const Error *err)
{
    (void)ctx;
    fail_msg("%s", err->text);
}

static const ReaderHandlers handlers = {
    .on_messages = note_messages, .on_caught_up = note_caught_up, .on_failed = note_failed};

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

static void end(Reader *reader)
{
    rig.done = false;
    reader_free(reader, on_rig_done, &rig);
    WAIT_FLAG(&rig, rig.done);
}

// Eight windows of what a reader asks for at once.
static void a_backlog_is_read_as_it_comes(void **state)
{
    (void)state;
    Seen seen = {0};
    publish_many(&rig, sent, "s", BACKLOG);
    bus_rest(rig.bus, REST_MS);
    uint64_t since_ns = uv_hrtime();
    Reader *reader = reader_new(rig.bus, &(ReaderOptions){.stream = "STATUS"}, &handlers, &seen);
    WAIT(&rig, seen.caught_up);
    assert_int_equal(seen.count, BACKLOG);
    assert_true(uv_hrtime() - since_ns < 3 * REST_MS * UINT64_C(1000000));
    end(reader);
}

static void what_comes_singly_is_read_together(void **state)
{
    (void)state;
    Seen seen = {0};
    Bus *reading = rig.bus;
    Bus *writing = rig_bus(&rig, getenv("STENTOR_TEST_NATS_URL"), "stentor-test", NULL);
    Reader *reader = reader_new(reading, &(ReaderOptions){.stream = "STATUS"}, &handlers, &seen);
    WAIT(&rig, seen.caught_up);
    bus_rest(reading, REST_MS);
    rig.bus = writing;
    publish_many(&rig, sent, "a", 1);
    WAIT(&rig, seen.count == 1);
    assert_true(bus_rests(reading));
    for (int i = 0; i < 3; i++) {
        char key[2] = {(char)('b' + i), '\0'};
        publish_many(&rig, sent, key, 1);
    }
    assert_int_equal(seen.count, 1); // stored, and not read yet
    WAIT(&rig, seen.count == 4);
    assert_int_equal(seen.calls, 2);
    end(reader);
    rig_close_bus(&rig, writing);
    rig.bus = reading;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_backlog_is_read_as_it_comes, open_rig, close_rig),
        cmocka_unit_test_setup_teardown(what_comes_singly_is_read_together, open_rig, close_rig),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
