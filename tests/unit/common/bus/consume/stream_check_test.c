// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/bus/consume/stream_check.h"

enum { CREATED = 1000, RESTARTED = 5000 };

static StreamVerdict verdict(int64_t known_us, uint64_t next, int64_t last_at_us, StreamState state)
{
    StreamPlace place = {known_us, next, last_at_us};
    return stream_check(&place, &state);
}

static void what_the_server_says_again_is_the_same(void **state)
{
    (void)state;
    assert_int_equal(verdict(CREATED, 11, 2000, (StreamState){CREATED, 1, 5, false}), STREAM_SAME);
    assert_int_equal(verdict(0, 11, 0, (StreamState){CREATED, 1, 10, false}), STREAM_SAME);
}

static void an_empty_place_takes_any_stream(void **state)
{
    (void)state;
    assert_int_equal(
        verdict(CREATED, 0, 0, (StreamState){RESTARTED, 1, 10, false}), STREAM_RENAMED);
    assert_int_equal(verdict(CREATED, 1, 0, (StreamState){RESTARTED, 1, 0, false}), STREAM_RENAMED);
}

static void what_was_stored_after_the_time_that_is_reported_shows_the_same(void **state)
{
    (void)state;
    const StreamState now = {RESTARTED, 1, 20, false};
    assert_int_equal(verdict(CREATED, 11, RESTARTED, now), STREAM_RENAMED);
    assert_int_equal(verdict(CREATED, 11, RESTARTED - 1, now), STREAM_LOOK);
    const StreamState aged = {RESTARTED, 15, 20, false}; // the ends are the reader's to check
    assert_int_equal(verdict(CREATED, 11, RESTARTED + 1, aged), STREAM_RENAMED);
}

static void the_last_message_read_decides_while_it_is_there(void **state)
{
    (void)state;
    assert_int_equal(verdict(CREATED, 11, 2000, (StreamState){RESTARTED, 10, 10, 0}), STREAM_LOOK);
    assert_int_equal(verdict(CREATED, 11, 2000, (StreamState){RESTARTED, 1, 30, 1}), STREAM_LOOK);
}

static void a_shorter_stream_is_another(void **state)
{
    (void)state;
    const StreamState shorter = {RESTARTED, 1, 9, false};
    assert_int_equal(verdict(CREATED, 11, RESTARTED + 1, shorter), STREAM_OTHER);
    assert_int_equal(verdict(CREATED, 11, 2000, (StreamState){RESTARTED, 1, 9, 1}), STREAM_OTHER);
    assert_int_equal(verdict(CREATED, 11, 0, (StreamState){RESTARTED, 1, 0, false}), STREAM_OTHER);
}

static void all_that_was_read_may_be_gone_by_age(void **state)
{
    (void)state;
    const StreamState empty = {RESTARTED, 11, 10, false}, next = {RESTARTED, 11, 20, false};
    assert_int_equal(verdict(CREATED, 11, 2000, empty), STREAM_RENAMED);
    assert_int_equal(verdict(CREATED, 11, 0, next), STREAM_RENAMED);
    assert_int_equal(verdict(CREATED, 10, 2000, next), STREAM_OTHER); // 10 was not read
}

static void without_a_time_nothing_shows_the_same(void **state)
{
    (void)state;
    assert_int_equal(verdict(CREATED, 11, 0, (StreamState){RESTARTED, 1, 20, 0}), STREAM_OTHER);
    assert_int_equal(verdict(CREATED, 11, 0, (StreamState){RESTARTED, 1, 20, 1}), STREAM_AGAIN);
}

static void the_last_of_each_subject_is_read_again_when_in_doubt(void **state)
{
    (void)state;
    const StreamState replaced = {RESTARTED, 15, 20, true};
    assert_int_equal(verdict(CREATED, 11, 2000, replaced), STREAM_AGAIN);
}

static void an_answer_is_read_whole_or_not_at_all(void **state)
{
    (void)state;
    StreamState got = {0};
    json_t *info = json_pack(
        "{s:s, s:{s:i}, s:{s:i, s:i}}", "created", "2026-01-02T03:04:05.678901234Z", "config",
        "max_msgs_per_subject", 8, "state", "first_seq", 3, "last_seq", 9);
    assert_true(stream_state_read(info, &got));
    char created[CLOCK_RFC3339_SIZE];
    clock_format(got.created_us, created);
    assert_string_equal(created, "2026-01-02T03:04:05.678901Z");
    assert_int_equal(got.first, 3);
    assert_int_equal(got.last, 9);
    assert_true(got.last_per_subject);
    json_object_set_new(info, "created", json_string("yesterday"));
    assert_false(stream_state_read(info, &got));
    json_object_del(info, "state");
    assert_false(stream_state_read(info, &got));
    assert_false(stream_state_read(NULL, &got));
    json_decref(info);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_server_says_again_is_the_same),
        cmocka_unit_test(an_empty_place_takes_any_stream),
        cmocka_unit_test(what_was_stored_after_the_time_that_is_reported_shows_the_same),
        cmocka_unit_test(the_last_message_read_decides_while_it_is_there),
        cmocka_unit_test(a_shorter_stream_is_another),
        cmocka_unit_test(all_that_was_read_may_be_gone_by_age),
        cmocka_unit_test(without_a_time_nothing_shows_the_same),
        cmocka_unit_test(the_last_of_each_subject_is_read_again_when_in_doubt),
        cmocka_unit_test(an_answer_is_read_whole_or_not_at_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
