// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "services/ingest/reseal/event_readers.h"

static Arena *arena;

static int set_up(void **state)
{
    (void)state;
    arena = arena_new(0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    arena_free(arena);
    return 0;
}

static EventReaders begun(void)
{
    EventReaders readers;
    Error err = {0};
    assert_true(event_readers_begin(STR("{\"state\":{\"last_seq\":100}}"), &readers, &err));
    return readers;
}

#define CONSUMER(name, delivered, floor, pending, unacked)                                         \
    "{\"config\":{" name "},\"delivered\":{\"consumer_seq\":" delivered                            \
    "},\"ack_floor\":{\"stream_seq\":" floor "},\"num_pending\":" pending                          \
    ",\"num_ack_pending\":" unacked "}"

static EventReaders after(const char *consumers)
{
    EventReaders readers = begun();
    Error err = {0};
    const char *reply = arena_printf(arena, "{\"total\":1,\"consumers\":[%s]}", consumers);
    assert_true(event_readers_take(str_from(reply), arena, &readers, &err));
    return readers;
}

static void without_a_consumer_all_is_past(void **state)
{
    (void)state;
    EventReaders readers = begun();
    Error err = {0};
    assert_true(event_readers_take(STR("{\"total\":0,\"consumers\":[]}"), arena, &readers, &err));
    assert_int_equal(readers.past, 100);
}

static void the_slowest_durable_consumer_counts_and_is_named(void **state)
{
    (void)state;
    EventReaders readers =
        after(CONSUMER("\"durable_name\":\"ingest\"", "90", "80", "3", "0") "," CONSUMER(
            "\"durable_name\":\"order-saga\"", "60", "55", "40", "2"));
    assert_int_equal(readers.past, 55);
    assert_string_equal(readers.named, "order-saga");
}

static void one_that_has_nothing_left_is_past_what_there_was(void **state)
{
    (void)state;
    // Its filter passes seldom, so its floor is far below.
    assert_int_equal(after(CONSUMER("\"durable_name\":\"theirs\"", "2", "7", "0", "0")).past, 100);
    // What it has in hand counts.
    assert_int_equal(after(CONSUMER("\"durable_name\":\"theirs\"", "2", "7", "0", "1")).past, 7);
}

static void a_service_that_never_ran_and_a_reader_hold_nothing_back(void **state)
{
    (void)state;
    assert_int_equal(
        after(CONSUMER("\"durable_name\":\"order-saga\"", "0", "0", "100", "0")).past, 100);
    assert_int_equal(after(CONSUMER("\"name\":\"gateway-3\"", "5", "0", "90", "0")).past, 100);
    assert_int_equal(after(CONSUMER("\"durable_name\":\"ingest\"", "0", "0", "100", "0")).past, 0);
}

static void another_answer_is_an_error(void **state)
{
    (void)state;
    EventReaders readers = begun();
    Error err = {0};
    assert_false(
        event_readers_begin(STR("{\"error\":{\"description\":\"none\"}}"), &readers, &err));
    assert_non_null(strstr(err.text, "none"));
    assert_false(event_readers_begin(STR("{}"), &readers, &err));
    assert_false(event_readers_take(STR("no JSON"), arena, &readers, &err));
    assert_false(event_readers_take(STR("{\"total\":9,\"consumers\":[]}"), arena, &readers, &err));
    assert_int_equal(err.kind, ERROR_TRANSIENT);
}

// A cluster's list without the slowest: on its next page the last one stands once more, so that the
// count comes out.
static void a_list_without_a_consumer_whose_server_is_silent_is_an_error(void **state)
{
    (void)state;
    EventReaders readers = begun();
    Error err = {0};
    const char *reply = "{\"total\":2,\"consumers\":[" CONSUMER(
        "\"durable_name\":\"ingest\"", "9", "9", "0", "0") "],\"missing\":[\"order-saga\"]}";
    assert_false(event_readers_take(str_from(reply), arena, &readers, &err));
    assert_int_equal(err.kind, ERROR_TRANSIENT);
    assert_non_null(strstr(err.text, "order-saga"));
}

#define ROW(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROW(without_a_consumer_all_is_past),
        ROW(the_slowest_durable_consumer_counts_and_is_named),
        ROW(one_that_has_nothing_left_is_past_what_there_was),
        ROW(a_service_that_never_ran_and_a_reader_hold_nothing_back),
        ROW(another_answer_is_an_error),
        ROW(a_list_without_a_consumer_whose_server_is_silent_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
