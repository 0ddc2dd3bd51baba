// SPDX-License-Identifier: Apache-2.0
// Every refusal says where and why; every limit holds.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/template/template.h"

typedef struct Row {
    const char *source;
    const char *expected; // part of the error
} Row;

static void check_row(const Row *row)
{
    Error err = {0};
    Template *tpl = template_compile(str_from(row->source), TEMPLATE_ESCAPE_HTML, NULL, &err);
    if (tpl != NULL) {
        fail_msg("'%s' compiles", row->source);
    }
    assert_int_equal(err.kind, ERROR_PERMANENT);
    if (strstr(err.text, row->expected) == NULL) {
        fail_msg("'%s': expected '%s' in '%s'", row->source, row->expected, err.text);
    }
}

static void a_syntax_error_says_where_and_why(void **state)
{
    (void)state;
    // clang-format off
    static const Row rows[] = {
        {"a\nbc{{#if x}}", "line 2, column 3: '{{#if' is never closed; add '{{/if}}'"},
        {"{{#a}}{{/b}}", "line 1, column 7: '{{/b}}' does not match '{{#a'; write '{{/a}}'"},
        {"\xc3\xa9{{/if}}", "line 1, column 2: this '{{/' closes nothing"},
        {"{{else}}", "'{{else}}' outside of a block"},
        {"{{#if a}}{{else}}{{else}}{{/if}}", "line 1, column 18: this else has no place"},
        {"{{^a}}{{else if b}}{{/a}}", "use '{{else}}'"},
        {"x {{name", "line 1, column 3: this tag is never closed; add '}}'"},
        {"{{name}", "unexpected '}'"},
        {"{{}}", "the tag is empty"},
        {"{{{name}}", "expected '}}}', found '}}'"},
        {"{{name}}}", "expected '}}', found '}}}'"},
        {"{{! never", "the comment '{{!' is never closed; add '}}'"},
        {"{{!-- never }}", "the comment '{{!--' is never closed; add '--}}'"},
        {"{{a../b}}", "line 1, column 1: unknown helper 'a'"},
        {"{{a.this}}", "'this' may only begin a path"},
        {"{{a.=}}", "a name"},
        {"{{a#b}}", "unexpected '#'"},
        {"{{#if \"x}}", "the string is never closed"},
        {"{{[x}}", "the '[' is never closed"},
        {"{{= <% %> =}}", "expected a name, found '='"},
    };
    // clang-format on
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        check_row(&rows[i]);
    }
}

static void what_the_language_lacks_is_named(void **state)
{
    (void)state;
    // clang-format off
    static const Row rows[] = {
        {"{{format total}}", "unknown helper 'format'"},
        {"{{#repeat 3}}{{/repeat}}", "unknown helper 'repeat'"},
        {"{{total unit=1}}", "unknown helper 'total'"},
        {"{{lookup a}}", "'lookup' takes 2 to 2 arguments without a name, not 1"},
        {"{{#upper a}}{{/upper}}", "'upper' is not a block"},
        {"{{upper a x=1}}", "'upper' has no argument 'x'; it takes: locale"},
        {"{{../upper a}}", "unknown helper '../upper'"},
        {"{{if a}}", "'if' is a block; write '{{#if ...}}'"},
        {"{{#if}}{{/if}}", "'#if' takes one argument, not 0"},
        {"{{#each a b}}{{/each}}", "'#each' takes one argument, not 2"},
        {"{{#each a x=1}}{{/each}}", "unknown argument 'x'"},
        {"{{#if a includeZero=b}}{{/if}}", "unknown argument 'includeZero'"},
        {"{{@level}}", "unknown '@level'"},
        {"{{#if (a)}}{{/if}}", "line 1, column 7: unknown helper 'a'"},
        {"{{#if (eq a b}}{{/if}}", "the subexpression '(eq' is never closed; add ')'"},
        {"{{#if ()}}{{/if}}", "the subexpression is empty"},
        {"{{#if(eq a b)}}{{/if}}", "a space is missing before the subexpression's '('"},
        {"{{#if (not (not (not (not (not (not (not (not (not a)))))))))}}", "more than 8 subexpressions"},
        {"{{a as |x|}}", "only blocks have parameters"},
        {"{{#each a as |x y z|}}{{/each}}", "block parameters are one or two names"},
        {"{{#each a as ||}}{{/each}}", "block parameters are one or two names"},
        {"{{#if a as |x|}}{{/if}}", "'#if' has no block parameters"},
        {"{{{{raw}}}}", "raw blocks"},
        {"{{#*repeat 3}}{{/repeat}}", "unknown decorator 'repeat'"},
        {"{{* x}}", "decorators"},
        {"{{> p}}", "unknown partial 'p'"},
    };
    // clang-format on
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        check_row(&rows[i]);
    }
}

// `count` times `piece`, on the heap.
static char *repeat(const char *piece, size_t count)
{
    size_t len = strlen(piece);
    char *text = calloc(len * count + 1, 1);
    assert_non_null(text);
    for (size_t i = 0; i < count; i++) {
        memcpy(text + i * len, piece, len);
    }
    return text;
}

static void expect_refused(const char *piece, size_t count, const char *expected)
{
    char *text = repeat(piece, count);
    check_row(&(Row){text, expected});
    free(text);
}

static void nesting_and_size_are_bounded(void **state)
{
    (void)state;
    expect_refused("{{#if a}}", 33, "more than 32 blocks");
    expect_refused("{{#if a}}{{else if b}}", 300, "inside each other");
    expect_refused("xxxxxxxx", 32 * 1024 + 1, "the source has 262152 bytes");
    expect_refused("{{[", 1, "never closed");
    char *names = repeat("a.", 33);
    char source[256];
    (void)snprintf(source, sizeof source, "{{%sb}}", names);
    check_row(&(Row){source, "at most 32 names"});
    free(names);
}

static void a_long_chain_of_else_is_fine(void **state)
{
    (void)state;
    char *middle = repeat("{{else if b}}x", 200);
    size_t size = strlen(middle) + 64;
    char *source = malloc(size);
    assert_non_null(source);
    (void)snprintf(source, size, "{{#if a}}%s{{else}}end{{/if}}", middle);
    Error err = {0};
    Template *tpl = template_compile(str_from(source), TEMPLATE_ESCAPE_HTML, NULL, &err);
    assert_non_null(tpl);
    Buf out;
    buf_init(&out, 100);
    assert_true(template_render(tpl, NULL, &out, &err));
    assert_string_equal(buf_c(&out), "end");
    buf_done(&out);
    template_free(tpl);
    free(source);
    free(middle);
}

static void bytes_that_are_no_text_are_refused(void **state)
{
    (void)state;
    Error err = {0};
    assert_null(template_compile(STR("a\xff"), TEMPLATE_ESCAPE_HTML, NULL, &err));
    assert_string_equal(err.text, "the source is not UTF-8 text");
    assert_null(template_compile(str_of("a\0b", 3), TEMPLATE_ESCAPE_HTML, NULL, &err));
    assert_string_equal(err.text, "the source is not UTF-8 text");
}

// A render that must fail with `expected`, over an array of `count` empty objects called "a".
static void expect_limit(const char *source, size_t count, const char *expected)
{
    Error err = {0};
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(json_array_append_new(array, json_object()), 0);
    }
    json_t *variables = json_pack("{s:o}", "a", array);
    Template *tpl = template_compile(str_from(source), TEMPLATE_ESCAPE_HTML, NULL, &err);
    assert_non_null(tpl);
    Buf out;
    buf_init(&out, 2 * TEMPLATE_OUTPUT_MAX);
    assert_false(template_render(tpl, variables, &out, &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
    assert_string_equal(err.text, expected);
    buf_done(&out);
    template_free(tpl);
    json_decref(variables);
}

static void a_render_is_bounded_in_rounds_steps_and_bytes(void **state)
{
    (void)state;
    expect_limit(
        "{{#each a}}{{/each}}", 10001,
        "line 1, column 1: more than 10000 rounds of loops and partials in one render");
    char *tags = repeat("{{b}}", 400);
    char *source = malloc(strlen(tags) + 64);
    assert_non_null(source);
    (void)snprintf(source, strlen(tags) + 64, "{{#each a}}%s{{/each}}", tags);
    expect_limit(source, 9000, "line 1, column 1227: the template takes more than 1000000 steps");
    free(source);
    free(tags);
    expect_limit(
        "{{#each a}}{{@root.a}}{{/each}}", 1000,
        "line 1, column 12: the output is larger than 524288 bytes");
}

static void output_for_a_smaller_field_names_the_limit_of_that(void **state)
{
    (void)state;
    Error err = {0};
    Buf out;
    Template *tpl = template_compile(STR("{{a}}"), TEMPLATE_ESCAPE_NONE, NULL, &err);
    json_t *values = json_pack("{s:s}", "a", "more than eight");
    const TemplateContext context = {.strict = false};
    buf_init(&out, 8);
    assert_false(template_render_in(tpl, &context, values, &out, &err));
    assert_non_null(strstr(err.text, "the output is larger than 8 bytes"));
    buf_done(&out);
    json_decref(values);
    template_free(tpl);
}

static void deep_arrays_do_not_exhaust_the_stack(void **state)
{
    (void)state;
    Error err = {0};
    json_t *array = json_array();
    for (int i = 0; i < 1000; i++) {
        array = json_pack("[o]", array);
    }
    Template *tpl = template_compile(STR("{{.}}"), TEMPLATE_ESCAPE_HTML, NULL, &err);
    assert_non_null(tpl);
    Buf out;
    buf_init(&out, 1000);
    assert_false(template_render(tpl, array, &out, &err));
    assert_string_equal(
        err.text, "line 1, column 1: an array nested deeper than 32 cannot be printed");
    buf_done(&out);
    template_free(tpl);
    json_decref(array);
}

static void a_full_buffer_is_an_error(void **state)
{
    (void)state;
    Error err = {0};
    Template *tpl = template_compile(STR("0123456789"), TEMPLATE_ESCAPE_HTML, NULL, &err);
    assert_non_null(tpl);
    Buf out;
    buf_init(&out, 5);
    assert_false(template_render(tpl, NULL, &out, &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
    buf_done(&out);
    template_free(tpl);
}

static void lookup_follows_a_path(void **state)
{
    (void)state;
    json_t *variables =
        json_loads("{\"order\":{\"items\":[{\"name\":\"x\"}],\"id\":null}}", 0, NULL);
    const json_t *name = template_lookup(variables, STR("order.items.0.name"));
    assert_string_equal(json_string_value(name), "x");
    assert_true(json_is_null(template_lookup(variables, STR("order.id"))));
    assert_ptr_equal(template_lookup(variables, STR("Order.items.0.Name")), name);
    assert_null(template_lookup(variables, STR("order.items.1.name")));
    assert_null(template_lookup(variables, STR("order.items.name")));
    assert_null(template_lookup(variables, STR("order.")));
    assert_null(template_lookup(variables, STR("")));
    assert_null(template_lookup(NULL, STR("order")));
    json_decref(variables);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_syntax_error_says_where_and_why),
        cmocka_unit_test(what_the_language_lacks_is_named),
        cmocka_unit_test(nesting_and_size_are_bounded),
        cmocka_unit_test(a_long_chain_of_else_is_fine),
        cmocka_unit_test(bytes_that_are_no_text_are_refused),
        cmocka_unit_test(a_render_is_bounded_in_rounds_steps_and_bytes),
        cmocka_unit_test(output_for_a_smaller_field_names_the_limit_of_that),
        cmocka_unit_test(deep_arrays_do_not_exhaust_the_stack),
        cmocka_unit_test(a_full_buffer_is_an_error),
        cmocka_unit_test(lookup_follows_a_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
