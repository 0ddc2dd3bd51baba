// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "services/ingest/batches/recipient_query.h"

typedef struct Case {
    const char *query;  // NULL: none
    const char *wanted; // as it is stored
} Case;

static bool read_query(Arena *arena, const char *query, Str *ret, Problem *ret_problem)
{
    ApiBody body = {0};
    *ret = STR_EMPTY;
    const char *text = arena_printf(
        arena, "{%s%s}", query == NULL ? "" : "\"recipient_query\":", query == NULL ? "" : query);
    assert_true(api_body_parse(&body, str_from(text), arena));
    bool ok = recipient_query_read(&body, ret) && api_body_end(&body);
    *ret_problem = body.problem;
    api_body_free(&body);
    return ok;
}

static void a_query_is_stored_as_a_list_of_alternatives(void **state)
{
    (void)state;
    static const Case CASES[] = {
        {NULL, ""},
        {"null", ""},
        {"{}", "[{}]"},
        {"{\"labels\":\"vip\"}", "[{\"labels\":[\"vip\"]}]"},
        {"{\"labels\":[\"vip\",\"gold\"],\"consent\":true}",
         "[{\"labels\":[\"vip\",\"gold\"],\"consent\":true}]"},
        {"{\"locales\":[\"de\",\"en-GB\"],\"identity_types\":\"guest\"}",
         "[{\"locales\":[\"de\",\"en-gb\"],\"identity_types\":[\"guest\"]}]"},
        {"[{\"labels\":\"vip\"},{\"locales\":\"fr\"}]",
         "[{\"labels\":[\"vip\"]},{\"locales\":[\"fr\"]}]"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        Arena *arena = arena_new(0);
        Problem problem = {0};
        Str query = STR_EMPTY;
        if (!read_query(arena, CASES[i].query, &query, &problem)) {
            fail_msg("case %zu: %s: %s", i, problem.field, problem.detail);
        }
        if (!str_eq(query, str_from(CASES[i].wanted))) {
            fail_msg("case %zu: " STR_FMT, i, STR_ARG(query));
        }
        arena_free(arena);
    }
}

static void a_fault_names_its_field(void **state)
{
    (void)state;
    static const Case CASES[] = {
        {"7", "recipient_query"},
        {"[]", "recipient_query"},
        {"[7]", "recipient_query[0]"},
        {"[{},{},{},{},{},{},{},{},{}]", "recipient_query"},
        {"{\"label\":\"vip\"}", "recipient_query.label"},
        {"{\"labels\":[]}", "recipient_query.labels"},
        {"{\"labels\":{}}", "recipient_query.labels"},
        {"{\"labels\":[\"vip\",\"V I P\"]}", "recipient_query.labels[1]"},
        {"{\"labels\":[7]}", "recipient_query.labels[0]"},
        {"{\"locales\":\"en_US\"}", "recipient_query.locales"},
        {"{\"identity_types\":[\"robot\"]}", "recipient_query.identity_types[0]"},
        {"{\"consent\":false}", "recipient_query.consent"},
        {"{\"consent\":\"yes\"}", "recipient_query.consent"},
        {"[{},{\"locales\":[\"de\",\"-\"]}]", "recipient_query[1].locales[1]"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        Arena *arena = arena_new(0);
        Problem problem = {0};
        Str query = STR_EMPTY;
        assert_false(read_query(arena, CASES[i].query, &query, &problem));
        assert_int_equal(problem.status, 422);
        assert_string_equal(problem.field, CASES[i].wanted);
        assert_true(problem.detail[0] != '\0');
        arena_free(arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_query_is_stored_as_a_list_of_alternatives),
        cmocka_unit_test(a_fault_names_its_field),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
