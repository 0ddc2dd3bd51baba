// SPDX-License-Identifier: Apache-2.0
// What CleanUpSentEmail may look like; the passes are tests/integration/operating/test_cleanup.py,
// the functions in tests/unit/common/db/retention_pg_test.c.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/service/cleanup.h"

static BusMessage message_of(const char *subject, const char *payload)
{
    return (BusMessage){
        .subject = str_from(subject),
        .payload = str_from(payload),
        .event_id = STR("clean-1"),
        .stream = "EVENTS",
        .sequence = 1,
    };
}

static void it_says_whose_rows_and_whose_word(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"{\"requested_by\":\"ops\"}", "ops"},
        {"{\"requestedBy\":\"ops\"}", "ops"},
        {"{\"requested_by\":null}", ""},
        {"{}", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Arena *arena = arena_new(0);
        Str tenant, by;
        Error err = {0};
        BusMessage message = message_of("evt.acme.CleanUpSentEmail", rows[i][0]);
        assert_true(cleanup_event_read(&message, arena, &tenant, &by, &err));
        assert_true(str_eq(tenant, STR("acme")));
        assert_true(str_eq(by, str_from(rows[i][1])));
        arena_free(arena);
    }
}

static void what_does_not_fit_is_named(void **state)
{
    (void)state;
    static const char *const rows[][3] = {
        {"evt.acme.CleanUpSentEmail", "{\"requested_by\":7}", "'requested_by'"},
        {"evt.acme.CleanUpSentEmail", "{\"requested_by\":\"a\\tb\"}", "'requested_by'"},
        {"evt.acme.CleanUpSentEmail", "[]", "CleanUpSentEmail"},
        {"evt.acme.CleanUpSentEmail", "\xff", "CleanUpSentEmail"},
        {"evt.-.CleanUpSentEmail", "{}", "subject"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Arena *arena = arena_new(0);
        Str tenant, by;
        Error err = {0};
        BusMessage message = message_of(rows[i][0], rows[i][1]);
        assert_false(cleanup_event_read(&message, arena, &tenant, &by, &err));
        assert_int_equal(err.kind, ERROR_PERMANENT);
        if (strstr(err.text, rows[i][2]) == NULL) {
            fail_msg("'%s' does not say %s", err.text, rows[i][2]);
        }
        arena_free(arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_says_whose_rows_and_whose_word),
        cmocka_unit_test(what_does_not_fit_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
