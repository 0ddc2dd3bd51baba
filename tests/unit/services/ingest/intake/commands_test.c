// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/codec/event.h"
#include "services/ingest/intake/commands.h"
#include "stentor/v1/request.pb-c.h"

#define NOW_US INT64_C(1795199136000000)

static Stentor__V1__NotifyCommand good(void)
{
    static char to[] = "Bob@EXAMPLE.com";
    static char key[] = "welcome";
    Stentor__V1__NotifyCommand command;
    stentor__v1__notify_command__init(&command);
    command.to = to;
    command.template_ = key;
    return command;
}

static bool read_back(
    const Stentor__V1__NotifyCommand *command, Arena *arena, Request *ret, Error *err)
{
    Str bytes = STR_EMPTY;
    assert_true(event_pack(&command->base, arena, &bytes, NULL));
    return command_read(bytes, false, NOW_US, arena, ret, err);
}

static void a_command_becomes_a_checked_request(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    Stentor__V1__NotifyCommand command = good();
    command.variables_json = arena_cstr(arena, STR("{\"a\":1}"));
    command.scheduled_for_us = NOW_US + 5;
    Request request;
    assert_true(read_back(&command, arena, &request, NULL));
    assert_true(str_eq(request.to, STR("Bob@example.com")));
    assert_int_equal(request.channel, CHANNEL_EMAIL);
    assert_int_equal(request.priority, PRIORITY_NORMAL);
    assert_int_equal(request.scheduled_for_us, NOW_US + 5);
    assert_true(str_eq(request.variables, STR("{\"a\":1}")));
    arena_free(arena);
}

static void a_bad_command_is_permanent_and_names_the_field(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    char no_at_sign[] = "no-at-sign";
    char list[] = "[1]";
    char torn[] = "{\"a\":";
    char injected[] = "A\r\nBcc: x";
    Stentor__V1__NotifyCommand bad[] = {good(), good(), good(), good(),
                                        good(), good(), good(), good()};
    Stentor__V1__Retries many;
    stentor__v1__retries__init(&many);
    many.max_attempts = 12;
    bad[0].to = no_at_sign;
    bad[1].variables_json = list;
    bad[2].variables_json = torn;
    bad[3].to_name = injected;
    bad[4].channel = (Stentor__V1__Channel)77;
    bad[5].priority = (Stentor__V1__Priority)77;
    bad[6].expires_at_us = NOW_US - 1;
    bad[7].retries = &many;
    static const char *const FIELDS[] = {"'to'",         "'variables_json'", "'variables_json'",
                                         "'to.name'",    "'channel'",        "'priority'",
                                         "'expires_at'", "'retries'"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        Request request;
        Error err = {0};
        assert_false(read_back(&bad[i], arena, &request, &err));
        assert_int_equal(err.kind, ERROR_PERMANENT);
        if (strstr(err.text, FIELDS[i]) == NULL) {
            fail_msg("case %zu: %s", i, err.text);
        }
    }
    arena_free(arena);
}

static void a_test_of_a_version_is_transactional_expires_and_names_what_it_tests(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    Stentor__V1__NotifyCommand command = good();
    Request request;
    Error err = {0};
    Str bytes = STR_EMPTY;
    command.category = STENTOR__V1__CATEGORY__CATEGORY_MARKETING;
    command.scheduled_for_us = NOW_US + 5;
    assert_true(event_pack(&command.base, arena, &bytes, NULL));
    assert_false(command_read(bytes, true, NOW_US, arena, &request, &err));
    assert_non_null(strstr(err.text, "'template_version'"));
    command.template_version = arena_cstr(arena, STR("1.2.0"));
    assert_true(event_pack(&command.base, arena, &bytes, NULL));
    assert_true(command_read(bytes, true, NOW_US, arena, &request, &err));
    assert_true(request.is_test);
    assert_int_equal(request.category, CATEGORY_TRANSACTIONAL);
    assert_int_equal(request.scheduled_for_us, 0);
    assert_int_equal(request.expires_at_us, NOW_US + INT64_C(3600000000));
    assert_true(str_eq(request.correlation_id, STR("test-send/welcome/1.2.0")));
    assert_true(command_read(bytes, false, NOW_US, arena, &request, &err));
    assert_false(request.is_test);
    arena_free(arena);
}

static void bytes_that_are_no_command_are_permanent(void **state)
{
    (void)state;
    static const Str POISON[] = {
        {"\xff\xff\xff\xff", 4},
        {"", 0},
        {"\x0a\x03"
         "abc",
         5},
        {"\x0a\x7f", 2}};
    Arena *arena = arena_new(0);
    for (size_t i = 0; i < sizeof POISON / sizeof POISON[0]; i++) {
        Request request;
        Error err = {0};
        assert_false(command_read(POISON[i], false, NOW_US, arena, &request, &err));
        assert_int_equal(err.kind, ERROR_PERMANENT);
    }
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_command_becomes_a_checked_request),
        cmocka_unit_test(a_bad_command_is_permanent_and_names_the_field),
        cmocka_unit_test(a_test_of_a_version_is_transactional_expires_and_names_what_it_tests),
        cmocka_unit_test(bytes_that_are_no_command_are_permanent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
