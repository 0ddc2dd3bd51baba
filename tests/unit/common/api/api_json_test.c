// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/api/api_json.h"

typedef struct Scene {
    Arena *arena;
    ApiBody body;
} Scene;

static int set_up(void **state)
{
    Scene *s = xcalloc(1, sizeof *s);
    s->arena = arena_new(0);
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    Scene *s = *state;
    api_body_free(&s->body);
    arena_free(s->arena);
    free(s);
    return 0;
}

static ApiBody *parse(Scene *s, const char *json)
{
    api_body_free(&s->body);
    assert_true(api_body_parse(&s->body, str_from(json), s->arena));
    return &s->body;
}

static void what_is_no_object_is_refused_with_its_place(void **state)
{
    Scene *s = *state;
    assert_false(api_body_parse(&s->body, STR("{\n  \"a\": ,"), s->arena));
    assert_int_equal(s->body.problem.status, 400);
    assert_non_null(strstr(s->body.problem.detail, "line 2"));
    assert_false(api_body_parse(&s->body, STR("[1]"), s->arena));
    assert_int_equal(s->body.problem.status, 400);
    assert_string_equal(s->body.problem.detail, "must be an object");
    assert_false(api_body_parse(&s->body, STR("{\"a\":1,\"a\":2}"), s->arena));
    assert_false(api_body_parse(&s->body, STR(""), s->arena));
    assert_false(api_body_parse(&s->body, STR("{\"a\":\"\xff\"}"), s->arena));
    assert_non_null(strstr(s->body.problem.detail, "UTF-8"));
}

static void the_same_value_has_the_same_canonical_text(void **state)
{
    Scene *s = *state;
    static const char *const same[] = {
        "{\"b\":[1,{\"d\":null,\"c\":\"\\u00e9/\"}],\"a\":1e2}",
        " {\n \"a\" : 100.0, \"b\": [ 1, {\"c\": \"\xc3\xa9\\/\", \"d\": null} ] } "};
    for (size_t i = 0; i < 2; i++) {
        Str text = api_json_canonical(parse(s, same[i])->root, s->arena);
        assert_string_equal(
            arena_cstr(s->arena, text), "{\"a\":100.0,\"b\":[1,{\"c\":\"\xc3\xa9/\",\"d\":null}]}");
    }
    Str text = api_json_canonical(parse(s, "{\"a\":1.0}")->root, s->arena);
    assert_string_equal(arena_cstr(s->arena, text), "{\"a\":1.0}");
    text = api_json_canonical(parse(s, "{\"a\":1}")->root, s->arena);
    assert_string_equal(arena_cstr(s->arena, text), "{\"a\":1}");
}

static void a_field_that_is_not_there_or_null_leaves_the_value_as_it_was(void **state)
{
    Scene *s = *state;
    for (int i = 0; i < 2; i++) {
        ApiBody *body = parse(
            s, i == 0 ? "{}"
                      : "{\"text\":null,\"flag\":null,\"number\":null,\"time\":null,"
                        "\"minute\":null,\"list\":null,\"object\":null}");
        Str text = STR("before");
        bool flag = true;
        int64_t number = 7;
        int64_t time_us = 8;
        uint32_t minute = 9;
        json_t *list = NULL;
        json_t *object = NULL;
        assert_true(api_read_text(body, "text", 10, &text));
        assert_true(api_read_bool(body, "flag", &flag));
        assert_true(api_read_int(body, "number", 0, 5, &number));
        assert_true(api_read_time(body, "time", &time_us));
        assert_true(api_read_minute(body, "minute", &minute));
        assert_true(api_read_array(body, "list", 5, &list));
        assert_true(api_read_object(body, "object", &object));
        assert_true(api_body_end(body));
        assert_true(str_eq(text, STR("before")) && flag && number == 7 && time_us == 8);
        assert_true(minute == 9 && list == NULL && object == NULL);
    }
}

static void each_kind_of_field_is_read(void **state)
{
    Scene *s = *state;
    ApiBody *body = parse(
        s, "{\"text\":\"hi\",\"flag\":false,\"number\":-3,\"time\":\"2026-11-20T18:25:36Z\","
           "\"minute\":\"23:59\",\"list\":[1,2],\"object\":{\"a\":1}}");
    Str text = STR_EMPTY;
    bool flag = true;
    int64_t number = 0;
    int64_t time_us = 0;
    uint32_t minute = 0;
    json_t *list = NULL;
    json_t *object = NULL;
    assert_true(api_has(body, "text"));
    assert_true(api_read_text(body, "text", 2, &text));
    assert_false(api_has(body, "text"));
    assert_true(api_read_bool(body, "flag", &flag));
    assert_true(api_read_int(body, "number", -3, 5, &number));
    assert_true(api_read_time(body, "time", &time_us));
    assert_true(api_read_minute(body, "minute", &minute));
    assert_true(api_read_array(body, "list", 2, &list));
    assert_true(api_read_object(body, "object", &object));
    assert_true(api_body_end(body));
    assert_true(str_eq(text, STR("hi")) && !flag && number == -3 && minute == 1439);
    assert_true(time_us == INT64_C(1795199136) * 1000000);
    assert_int_equal(json_array_size(list), 2);
    assert_int_equal(json_object_size(object), 1);
}

typedef enum Kind { TEXT, BOOL, INT, TIME, MINUTE, ARRAY, OBJECT } Kind;

static bool take(ApiBody *body, Kind kind)
{
    Str text = STR_EMPTY;
    bool flag = false;
    int64_t number = 0;
    uint32_t minute = 0;
    json_t *json = NULL;
    switch (kind) {
    case TEXT:
        return api_read_text(body, "a", 3, &text);
    case BOOL:
        return api_read_bool(body, "a", &flag);
    case INT:
        return api_read_int(body, "a", 0, 5, &number);
    case TIME:
        return api_read_time(body, "a", &number);
    case MINUTE:
        return api_read_minute(body, "a", &minute);
    case ARRAY:
        return api_read_array(body, "a", 1, &json);
    case OBJECT:
        return api_read_object(body, "a", &json);
    }
    return true;
}

static void a_nul_in_a_text_is_named_in_words(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    ApiBody body;
    assert_false(api_body_parse(&body, STR("{\"a\":\"x\\u0000y\"}"), arena));
    assert_int_equal(body.problem.status, 400);
    assert_non_null(strstr(body.problem.detail, "a text has a NUL character (\\u0000), which no "));
    assert_null(strstr(body.problem.detail, "JSON_ALLOW_NUL"));
    api_body_free(&body);
    arena_free(arena);
}

static void a_wrong_value_names_its_field(void **state)
{
    static const struct {
        Kind kind;
        const char *json;
    } cases[] = {
        {TEXT, "{\"a\":7}"},           {TEXT, "{\"a\":\"four\"}"},   {TEXT, "{\"a\":[]}"},
        {BOOL, "{\"a\":\"true\"}"},    {BOOL, "{\"a\":1}"},          {INT, "{\"a\":6}"},
        {INT, "{\"a\":-1}"},           {INT, "{\"a\":1.5}"},         {INT, "{\"a\":\"1\"}"},
        {TIME, "{\"a\":\"now\"}"},     {TIME, "{\"a\":\"\"}"},       {TIME, "{\"a\":1}"},
        {MINUTE, "{\"a\":\"\"}"},      {MINUTE, "{\"a\":\"8:30\"}"}, {MINUTE, "{\"a\":\"24:00\"}"},
        {MINUTE, "{\"a\":\"12:60\"}"}, {ARRAY, "{\"a\":[1,2]}"},     {ARRAY, "{\"a\":{}}"},
        {OBJECT, "{\"a\":[]}"},
    };
    Scene *s = *state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ApiBody *body = parse(s, cases[i].json);
        if (take(body, cases[i].kind)) {
            fail_msg("taken: %s", cases[i].json);
        }
        assert_int_equal(body->problem.status, 422);
        assert_string_equal(body->problem.field, "a");
        assert_true(body->problem.detail[0] != '\0');
        assert_false(api_body_end(body));
    }
}

static void an_unknown_field_and_one_inside_of_an_object_are_named(void **state)
{
    Scene *s = *state;
    ApiBody *body = parse(s, "{\"known\":\"x\",\"list\":[{\"b\":1}],\"other\":1}");
    Str text = STR_EMPTY;
    json_t *list = NULL;
    assert_true(api_read_text(body, "known", 9, &text));
    assert_true(api_read_array(body, "list", 9, &list));
    ApiBody inside = api_body_inside(body, json_array_get(list, 0), "list[0].");
    assert_false(api_body_end(&inside));
    assert_string_equal(inside.problem.field, "list[0].b");
    api_body_free(&inside);
    assert_false(api_body_end(body));
    assert_string_equal(body->problem.field, "other");
}

static void every_fault_is_kept_and_the_first_is_the_problem(void **state)
{
    Scene *s = *state;
    ApiBody *body = parse(s, "{\"a\":1,\"b\":2}");
    assert_false(api_body_fail(body, "a", "first"));
    assert_false(api_body_fail(body, "b", "second"));
    assert_false(api_body_fail(body, "a", "a field has one fault"));
    assert_false(api_body_end(body)); // both are left over, and named already
    assert_string_equal(body->problem.field, "a");
    assert_string_equal(body->problem.detail, "first");
    assert_int_equal(body->problem.more_count, 1);
    assert_string_equal(body->problem.more[0].field, "b");
    assert_string_equal(body->problem.more[0].detail, "second");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            what_is_no_object_is_refused_with_its_place, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_field_that_is_not_there_or_null_leaves_the_value_as_it_was, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            the_same_value_has_the_same_canonical_text, set_up, tear_down),
        cmocka_unit_test_setup_teardown(each_kind_of_field_is_read, set_up, tear_down),
        cmocka_unit_test(a_nul_in_a_text_is_named_in_words),
        cmocka_unit_test_setup_teardown(a_wrong_value_names_its_field, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            an_unknown_field_and_one_inside_of_an_object_are_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            every_fault_is_kept_and_the_first_is_the_problem, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
