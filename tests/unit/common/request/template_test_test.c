// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/codec/hash.h"
#include "common/request/template_test.h"

#define NOW_US INT64_C(1795199136000000)

static void the_longest_key_and_version_fit_into_the_correlation_id(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    char key[65], version[65];
    FieldError err = {.field = ""};
    memset(key, 'k', 64);
    memset(version, '1', 64);
    Request request = {.template_key = str_of(key, 64), .template_version = str_of(version, 64)};
    assert_true(template_test_mark(&request, NOW_US, arena, &err));
    assert_int_equal(request.correlation_id.len, REQUEST_ID_MAX);
    assert_true(str_starts(request.correlation_id, STR(TEMPLATE_TEST_CORRELATION "kkk")));
    arena_free(arena);
}

// What the gateway answers before ingest has accepted it.
static void the_id_is_that_of_a_command_of_class_standard(void **state)
{
    (void)state;
    char answered[ID_SIZE], made[ID_SIZE];
    template_test_id(STR("acme"), STR("Zm9vYmFyYmF6"), NOW_US, answered);
    notify_id_derive(
        STR("acme"), STR("Zm9vYmFyYmF6"), NOW_US, retention_class_code(RETENTION_STANDARD), made);
    assert_string_equal(answered, made);
    assert_int_equal(retention_class_of_id(str_from(answered)), RETENTION_STANDARD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_longest_key_and_version_fit_into_the_correlation_id),
        cmocka_unit_test(the_id_is_that_of_a_command_of_class_standard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
