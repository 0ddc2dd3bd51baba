// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/template/template.h"

typedef struct Row {
    const char *partial; // called "p"
    const char *source;
    const char *json;
    const char *expected;
} Row;

static bool run_json(const Row *row, const json_t *variables, Buf *out, Error *err)
{
    TemplateSet *set = template_set_new();
    bool ok = template_set_add(set, STR("p"), str_from(row->partial), TEMPLATE_ESCAPE_HTML, err);
    Template *tpl =
        ok ? template_compile(str_from(row->source), TEMPLATE_ESCAPE_HTML, set, err) : NULL;
    ok = tpl != NULL && template_render(tpl, variables, out, err);
    template_free(tpl);
    template_set_free(set);
    return ok;
}

static bool run_row(const Row *row, Buf *out, Error *err)
{
    json_t *variables = json_loads(row->json, JSON_DECODE_ANY, NULL);
    assert_non_null(variables);
    bool ok = run_json(row, variables, out, err);
    json_decref(variables);
    return ok;
}

static void check_row(const Row *row)
{
    Error err = {0};
    Buf out;
    buf_init(&out, TEMPLATE_OUTPUT_MAX);
    if (!run_row(row, &out, &err)) {
        fail_msg("%s: %s", row->source, err.text);
    }
    if (!str_eq(buf_view(&out), str_from(row->expected))) {
        fail_msg(
            "%s | %s\nexpected: [%s]\ngot:      [%s]", row->source, row->partial, row->expected,
            buf_c(&out));
    }
    buf_done(&out);
}

#define CHECK(rows)                                                                                \
    for (size_t i = 0; i < sizeof(rows) / sizeof *(rows); i++) {                                   \
        check_row(&(rows)[i]);                                                                     \
    }

// clang-format off
static void a_partial_sees_the_context_it_is_called_in(void **state)
{
    (void)state;
    static const Row rows[] = {
        {"*{{a}}*", "{{>p}}{{> p }}{{> \"p\"}}", "{\"a\":\"<\"}", "*&lt;**&lt;**&lt;*"},
        {"{{a}}", "{{#with b}}{{> p}}{{/with}}", "{\"b\":{\"a\":1}}", "1"},
        {"{{a}}", "{{> p b}}", "{\"b\":{\"a\":1}}", "1"},
        {"{{this}}", "{{> p \"text\"}}", "{}", "text"},
        {"{{@index}}{{@root.x}}", "{{#each b}}{{> p}} {{/each}}", "{\"b\":[1,2],\"x\":\"r\"}", "0r 1r "},
        {"[{{../a}}]", "{{#with b}}{{> p}}{{/with}}", "{\"a\":1,\"b\":{}}", "[]"},
    };
    CHECK(rows);
}

static void named_arguments_are_laid_over_the_context(void **state)
{
    (void)state;
    static const Row rows[] = {
        {"{{a}}{{b}}{{c}}", "{{> p a=\"x\" b=5}}", "{\"a\":1,\"c\":2}", "x52"},
        {"{{a}}{{b}}", "{{> p o a=o.b}}", "{\"o\":{\"a\":1,\"b\":2}}", "22"},
        {"{{a.b}}", "{{> p a=this}}", "{\"b\":3}", "3"},
        {"{{#if on}}{{n}}{{/if}}", "{{> p on=true n=1.5}}", "{}", "1.5"},
    };
    CHECK(rows);
}

static void a_partial_alone_on_its_line_is_indented(void **state)
{
    (void)state;
    static const Row rows[] = {
        {">\n>", "  {{>p}}\n>", "{}", "  >\n  >>"},
        {">\n>", ">\n  {{>p}}", "{}", ">\n  >\n  >"},
        {"a\n\nb\n", " {{>p}}\nz", "{}", " a\n \n b\nz"},
        {">", "|\r\n{{>p}}\r\n|", "{}", "|\r\n>|"},
        {">\n>", "  {{a}}  {{> p}}\n", "{\"a\":\"|\"}", "  |  >\n>\n"},
        {"", "  {{>p}}\nx", "{}", "x"},
        {"\t|\t", "| {{>p}} |", "{}", "| \t|\t |"},
    };
    CHECK(rows);
}

static void a_partial_may_call_itself_as_long_as_it_ends(void **state)
{
    (void)state;
    static const Row rows[] = {
        {"{{v}}<{{#each n}}{{>p}}{{/each}}>", "{{>p}}", "{\"v\":1,\"n\":[{\"v\":2,\"n\":[{\"v\":3}]}]}", "1<2<3<>>>"},
    };
    CHECK(rows);
}
// clang-format on

static void expect_error(const Row *row)
{
    Error err = {0};
    Buf out;
    buf_init(&out, TEMPLATE_OUTPUT_MAX);
    assert_false(run_row(row, &out, &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
    if (strstr(err.text, row->expected) == NULL) {
        fail_msg("%s: expected '%s' in '%s'", row->source, row->expected, err.text);
    }
    buf_done(&out);
}

static void endless_recursion_is_an_error(void **state)
{
    (void)state;
    expect_error(&(Row){
        "{{>p}}", "{{>p}}", "{}",
        "partial 'p': line 1, column 1: blocks and partials are more than 32 deep"});
}

// Two calls a level, 15 levels: within the depth, and 2^15 calls without a bound of their own.
static void branching_recursion_is_an_error_soon(void **state)
{
    (void)state;
    static const Row row = {.partial = "{{#each n}}{{>p}}{{>p}}{{/each}}", .source = "{{>p}}"};
    Error err = {0};
    json_t *tree = json_object();
    for (int i = 0; i < 15; i++) {
        tree = json_pack("{s:[o]}", "n", tree);
    }
    Buf out;
    buf_init(&out, TEMPLATE_OUTPUT_MAX);
    assert_false(run_json(&row, tree, &out, &err));
    assert_string_equal(
        err.text, "partial 'p': line 1, column 12: more than 10000 rounds of loops and partials in "
                  "one render");
    buf_done(&out);
    json_decref(tree);
}

static void faults_of_partials_are_reported(void **state)
{
    (void)state;
    // clang-format off
    static const Row rows[] = {
        {"", "a\n {{> q}}", "{}", "line 2, column 2: unknown partial 'q'"},
        {"{{> q}}", "{{> p}}", "{}", "partial 'p': line 1, column 1: unknown partial 'q'"},
        {"{{#if}}", "{{> p}}", "{}", "partial 'p': line 1, column 1: "},
        {"", "{{> p a b}}", "{}", "one context"},
        {"", "{{> p a=1 a=2}}", "{}", "argument 'a' is given twice"},
        {"", "{{> p a=1 b}}", "{}", "come before named ones"},
        {"{{#each this}}{{/each}}", "{{> p a=1}}", "{}", "'#each' cannot walk"},
    };
    // clang-format on
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        expect_error(&rows[i]);
    }
}

static void a_name_is_given_once(void **state)
{
    (void)state;
    Error err = {0};
    TemplateSet *set = template_set_new();
    assert_true(template_set_add(set, STR("p"), STR("a"), TEMPLATE_ESCAPE_HTML, &err));
    assert_false(template_set_add(set, STR("p"), STR("b"), TEMPLATE_ESCAPE_HTML, &err));
    assert_string_equal(err.text, "partial 'p' is given twice");
    template_set_free(set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_partial_sees_the_context_it_is_called_in),
        cmocka_unit_test(named_arguments_are_laid_over_the_context),
        cmocka_unit_test(a_partial_alone_on_its_line_is_indented),
        cmocka_unit_test(a_partial_may_call_itself_as_long_as_it_ends),
        cmocka_unit_test(endless_recursion_is_an_error),
        cmocka_unit_test(branching_recursion_is_an_error_soon),
        cmocka_unit_test(faults_of_partials_are_reported),
        cmocka_unit_test(a_name_is_given_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
