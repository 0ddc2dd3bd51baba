// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/archive/clocks.h"
#include "common/base/clock.h"

static int64_t at(const char *text)
{
    int64_t us = 0;
    assert_true(clock_parse(str_from(text), &us));
    return us;
}

// part: of the refusal; NULL: they agree.
static void judged(const char *host, const char *postgres, const char *stored, const char *part)
{
    ClockReadings readings = {
        .host_us = at(host),
        .postgres_us = at(postgres),
        .stored_us = stored != NULL ? at(stored) : 0,
        .stream = "STATUS"};
    Error err = {0};
    bool agree = clocks_agree(&readings, &err);
    assert_int_equal(agree, part == NULL);
    if (part != NULL) {
        assert_int_equal(err.kind, ERROR_PERMANENT);
        assert_non_null(strstr(err.text, part));
        assert_non_null(strstr(err.text, "(HINT: "));
        assert_int_equal(err.text[strlen(err.text) - 1], ')'); // whole, not cut
    }
}

static void clocks_that_agree_let_a_deletion_pass(void **state)
{
    (void)state;
    judged("2026-11-23T12:00:00Z", "2026-11-23T12:00:00Z", "2026-11-23T11:59:59Z", NULL);
    judged("2026-11-23T12:00:00Z", "2026-11-23T15:00:00Z", "2026-11-23T15:00:00Z", NULL);
    judged("2026-11-23T12:00:00Z", "2026-11-23T09:00:00Z", "2026-11-09T12:00:00Z", NULL);
}

static void a_host_ahead_of_or_behind_postgres_is_refused(void **state)
{
    (void)state;
    judged(
        "2033-11-23T12:00:00Z", "2026-11-23T12:00:00Z", "2026-11-23T11:00:00Z",
        "this host's says 2033-11-23T12:00:00Z, Postgres's 2026-11-23T12:00:00Z");
    judged("2026-11-23T12:00:00Z", "2033-11-23T12:00:00Z", NULL, "Postgres's 2033-11-23");
    judged("2026-11-23T12:00:00Z", "2026-11-23T15:00:00.000001Z", NULL, "Postgres's");
    judged("2026-11-23T12:00:00Z", "2026-11-23T08:59:59.999999Z", NULL, "Postgres's");
}

static void a_message_that_was_stored_in_the_future_is_named_with_its_stream(void **state)
{
    (void)state;
    judged(
        "2026-11-23T12:00:00Z", "2026-11-23T12:00:00Z", "2026-11-23T15:00:00.000001Z",
        "NATS stored a message of 'STATUS' at 2026-11-23T15:00:00Z");
}

// Host and Postgres on one machine jump together: the log is the third witness.
static void both_clocks_years_ahead_of_the_newest_message_are_refused(void **state)
{
    (void)state;
    judged(
        "2033-11-23T12:00:00Z", "2033-11-23T12:00:00Z", "2026-11-23T12:00:00Z",
        "the newest stored message is of 2026-11-23T12:00:00Z");
    judged("2026-11-23T12:00:00Z", "2026-11-23T12:00:00Z", "2026-11-09T11:59:59Z", "newest stored");
}

static void without_a_stored_message_host_and_postgres_are_compared_alone(void **state)
{
    (void)state;
    judged("2033-11-23T12:00:00Z", "2033-11-23T12:00:00Z", NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clocks_that_agree_let_a_deletion_pass),
        cmocka_unit_test(a_host_ahead_of_or_behind_postgres_is_refused),
        cmocka_unit_test(a_message_that_was_stored_in_the_future_is_named_with_its_stream),
        cmocka_unit_test(both_clocks_years_ahead_of_the_newest_message_are_refused),
        cmocka_unit_test(without_a_stored_message_host_and_postgres_are_compared_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
