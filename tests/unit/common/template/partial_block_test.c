// SPDX-License-Identifier: Apache-2.0
// Partial blocks and inline partials, row by row. Checked against Handlebars 4.7.
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
    const char *expected; // the output, or part of the error
    const char *p;        // partials; NULL: there is none
    const char *q;
} Row;

static const char variables[] =
    "{\"n\":\"root\",\"o\":{\"n\":\"o\",\"k\":{\"n\":\"k\"}},\"list\":[\"a\",\"b\"],\"z\":0}";

static void add_partial(TemplateSet *set, Str name, const char *source, Error *err)
{
    if (source != NULL) {
        (void)template_set_add(set, name, str_from(source), TEMPLATE_ESCAPE_HTML, err);
    }
}

static Template *compile_row(const Row *row, TemplateSet *set, Error *err)
{
    add_partial(set, STR("p"), row->p, err);
    add_partial(set, STR("q"), row->q, err);
    if (err->text[0] != '\0') {
        return NULL;
    }
    return template_compile(str_from(row->source), TEMPLATE_ESCAPE_HTML, set, err);
}

static bool run_row(const Row *row, bool lenient, Buf *out, Error *err)
{
    TemplateSet *set = template_set_new();
    if (lenient) {
        template_set_allow_missing(set);
    }
    json_t *json = json_loads(variables, 0, NULL);
    Template *tpl = compile_row(row, set, err);
    bool ok = tpl != NULL && template_render(tpl, json, out, err);
    json_decref(json);
    template_free(tpl);
    template_set_free(set);
    return ok;
}

static void check_row(const Row *row)
{
    Error err = {0};
    Buf out;
    buf_init(&out, TEMPLATE_OUTPUT_MAX);
    if (!run_row(row, false, &out, &err)) {
        fail_msg("%s: %s", row->source, err.text);
    }
    if (!str_eq(buf_view(&out), str_from(row->expected))) {
        fail_msg("%s\nexpected: [%s]\ngot:      [%s]", row->source, row->expected, buf_c(&out));
    }
    buf_done(&out);
}

// Does `template_compile` refuse it?
static void check_refused(const Row *row)
{
    Error err = {0};
    TemplateSet *set = template_set_new();
    Template *tpl = compile_row(row, set, &err);
    if (tpl != NULL || strstr(err.text, row->expected) == NULL) {
        fail_msg("%s: expected '%s' in '%s'", row->source, row->expected, err.text);
    }
    template_set_free(set);
}

// Does it compile, and its render fail?
static void check_fails(const Row *row)
{
    Error err = {0};
    TemplateSet *set = template_set_new();
    Template *tpl = compile_row(row, set, &err);
    if (tpl == NULL) {
        fail_msg("%s: %s", row->source, err.text);
    }
    json_t *json = json_loads(variables, 0, NULL);
    Buf out;
    buf_init(&out, TEMPLATE_OUTPUT_MAX);
    bool ok = template_render(tpl, json, &out, &err);
    if (ok || err.kind != ERROR_PERMANENT || strstr(err.text, row->expected) == NULL) {
        fail_msg("%s: expected '%s' in '%s'", row->source, row->expected, err.text);
    }
    buf_done(&out);
    json_decref(json);
    template_free(tpl);
    template_set_free(set);
}

#define EACH(rows, check)                                                                          \
    for (size_t i = 0; i < sizeof(rows) / sizeof *(rows); i++) {                                   \
        check(&(rows)[i]);                                                                         \
    }

// clang-format off
static void a_block_is_what_the_partial_calls(void **state)
{
    (void)state;
    static const Row rows[] = {
        {"{{#> p}}in{{/p}}", "<in>", .p = "<{{> @partial-block}}>"},
        {"{{#> p}}in{{/p}}", "in,in", .p = "{{> @partial-block}},{{>@partial-block}}"},
        {"{{#> p}}in{{/p}}", "no block", .p = "no block"},
        {"{{#> p}}{{/p}}", "<>", .p = "<{{> @partial-block}}>"},
        {"{{#> p}}in{{/p}}{{> p}}", "yesno", .p = "{{#if @partial-block}}yes{{else}}no{{/if}}"},
        {"{{#> p}}in{{/p}}|{{> p}}", "in|default", .p = "{{#> @partial-block}}default{{/@partial-block}}"},
        {"{{~#> p ~}} in {{~/p~}} x", "<in>x", .p = "<{{> @partial-block}}>"},
    };
    EACH(rows, check_row);
}

static void a_block_is_the_default_of_a_partial_that_is_not_there(void **state)
{
    (void)state;
    static const Row rows[] = {
        {"{{#> nowhere}}default{{/nowhere}}", "default", .p = NULL},
        {"{{#> nowhere o}}{{n}}{{../n}}{{/nowhere}}", "oroot", .p = NULL},
        {"{{#> nowhere n=5}}{{n}}{{/nowhere}}", "5", .p = NULL},
        {"{{#> nowhere}}{{#> elsewhere}}two{{/elsewhere}}{{/nowhere}}", "two", .p = NULL},
        {"{{#> p}}own{{/p}}", "[own]", .p = "[{{#> q}}{{> @partial-block}}{{/q}}]"},
        {"{{#> nowhere}}{{#*inline \"i\"}}1{{/inline}}{{> i}}{{/nowhere}}", "1", .p = NULL},
    };
    EACH(rows, check_row);
}

static void a_block_runs_there_and_means_what_it_means_here(void **state)
{
    (void)state;
    static const Row rows[] = {
        {"{{#> p}}{{n}}{{/p}}", "o", .p = "{{#with o}}{{> @partial-block}}{{/with}}"},
        {"{{#> p}}{{n}} {{../n}}{{/p}}", "o root", .p = "{{#with o}}{{> @partial-block}}{{/with}}"},
        {"{{#with o}}{{#> p k}}{{n}}{{../n}}{{../../n}}{{/p}}{{/with}}", "koroot", .p = "{{> @partial-block}}"},
        {"{{#> p}}{{this}}{{@index}}{{#if @last}}.{{/if}}{{/p}}", "a0b1.", .p = "{{#each list}}{{> @partial-block}}{{/each}}"},
        {"{{#with o as |me|}}{{#> p}}{{me.n}}{{/p}}{{/with}}", "o", .p = "{{#with k}}{{> @partial-block}}{{/with}}"},
        {"{{#each list as |x i|}}{{#> p}}{{#> p}}{{x}}{{i}}{{/p}}{{/p}}{{/each}}", "((a0))((b1))", .p = "({{> @partial-block}})"},
        {"{{#> p t=\"T\"}}{{t}}{{/p}}", "T", .p = "{{> @partial-block}}"},
        {"{{#> p}}{{@root.n}}{{/p}}", "root", .p = "{{#with o}}{{> @partial-block o.k}}{{/with}}"},
        {"{{#> p}}{{n}}{{/p}}", "k", .p = "{{> @partial-block o.k}}"},
    };
    EACH(rows, check_row);
}

static void blocks_within_blocks_know_their_own(void **state)
{
    (void)state;
    static const Row rows[] = {
        {"{{#> p}}x{{/p}}", "p(q(b(x)))", .p = "p({{#> q}}b({{> @partial-block}}){{/q}})", .q = "q({{> @partial-block}})"},
        {"{{#> p}}x{{/p}}", "q(1)x", .p = "{{#> q}}1{{/q}}{{> @partial-block}}", .q = "q({{> @partial-block}})"},
        {"{{#> p}}x{{/p}}", "<x>", .p = "{{> q}}", .q = "<{{> @partial-block}}>"},
        {"{{#> p}}{{#> q}}x{{/q}}{{/p}}", "p[q[x]]", .p = "p[{{> @partial-block}}]", .q = "q[{{> @partial-block}}]"},
    };
    EACH(rows, check_row);
}

static void an_inline_partial_is_there_in_its_body(void **state)
{
    (void)state;
    static const Row rows[] = {
        {"{{#*inline \"i\"}}<{{n}}>{{/inline}}{{> i}}{{> i o}}{{> i n=1}}", "<root><o><1>", .p = NULL},
        {"{{> i}}{{#*inline \"i\"}}1{{/inline}}", "1", .p = NULL},
        {"{{#*inline \"i\"}}1{{/inline}}{{#*inline \"i\"}}2{{/inline}}{{> i}}", "2", .p = NULL},
        {"{{#*inline \"p\"}}mine{{/inline}}{{> p}}", "mine", .p = "the set's"},
        {"{{#*inline \"i\"}}1{{/inline}}{{#if n}}{{#*inline \"i\"}}2{{/inline}}{{> i}}{{/if}}{{> i}}", "21", .p = NULL},
        {"{{#each list}}{{#*inline \"i\"}}<{{this}}>{{/inline}}{{> i}}{{/each}}", "<a><b>", .p = NULL},
        {"{{#if z}}{{else}}{{#*inline \"i\"}}1{{/inline}}{{> i}}{{/if}}", "1", .p = NULL},
        {"{{#*inline \"i\"}}1{{/inline}}{{#with o}}{{#with k}}{{> i}}{{/with}}{{/with}}", "1", .p = NULL},
        {"{{#*inline \"i\"}}{{> j}}{{/inline}}{{#*inline \"j\"}}1{{/inline}}{{> i}}", "1", .p = NULL},
        {"{{#*inline \"i\"}}{{#*inline \"j\"}}1{{/inline}}{{> j}}{{/inline}}{{> i}}", "1", .p = NULL},
        {"{{#*inline \"i\"}}({{> @partial-block}}){{/inline}}{{#> i}}x{{/i}}", "(x)", .p = NULL},
        {"{{#*inline \"i\"}}{{this}}{{#if this}}{{> i false}}{{/if}}{{/inline}}{{> i true}}", "truefalse", .p = NULL},
        {"{{#*inline \"i\"}}1{{/inline}}{{> (lookup . \"n\")}}{{#*inline \"root\"}}2{{/inline}}", "2", .p = NULL},
    };
    EACH(rows, check_row);
}

static void an_inline_partial_is_there_in_what_its_body_calls(void **state)
{
    (void)state;
    static const Row rows[] = {
        {"{{#*inline \"i\"}}1{{/inline}}{{> p}}", "1", .p = "{{> i}}"},
        {"{{#*inline \"i\"}}1{{/inline}}{{> p}}", "1", .p = "{{> q}}", .q = "{{> i}}"},
        {"{{#> p}}{{#*inline \"i\"}}1{{/inline}}{{/p}}", "1", .p = "{{> i}}"},
        {"{{#> p}}{{#*inline \"i\"}}1{{/inline}}{{/p}}{{> p}}", "1none", .p = "{{#> i}}none{{/i}}"},
        {"{{#> p}}{{#*inline \"i\"}}1{{/inline}}{{/p}}", "[<1>]", .p = "{{#> q}}{{#*inline \"i\"}}<{{> i}}>{{/inline}}{{/q}}", .q = "[{{> i}}]"},
        {"{{#with o}}{{#> p}}{{#*inline \"i\"}}{{n}}{{../n}}{{/inline}}{{/p}}{{/with}}", "oroot", .p = "{{> i}}"},
        {"{{#each list as |x|}}{{#> p}}{{#*inline \"i\"}}{{x}}{{/inline}}{{/p}}{{/each}}", "ab", .p = "{{#with @root.o}}{{> i}}{{/with}}"},
        {"{{#> p}}{{#*inline \"i\"}}1{{/inline}}x{{/p}}", "1x", .p = "{{> i}}{{> @partial-block}}"},
    };
    EACH(rows, check_row);
}

static void tags_alone_on_their_line_take_it_with_them(void **state)
{
    (void)state;
    static const Row rows[] = {
        {"{{#> p}}\n  in\n{{/p}}\nz", "<\n  in\n>z", .p = "<\n{{> @partial-block}}\n>"},
        {"a\n{{#*inline \"i\"}}\n  in\n{{/inline}}\nb\n{{> i}}\n", "a\nb\n  in\n", .p = NULL},
        {"  {{> p}}\n", "  <\n  in\n  >\n", .p = "{{#> q}}\nin\n{{/q}}", .q = "<\n{{> @partial-block}}\n>\n"},
        {"{{#> p}}\nx\ny\n{{/p}}", "<\n  x\n  y\n>", .p = "<\n  {{> @partial-block}}\n>"},
    };
    EACH(rows, check_row);
}

static void what_is_not_there_is_refused(void **state)
{
    (void)state;
    static const Row rows[] = {
        {"{{#if n}}{{#*inline \"i\"}}1{{/inline}}{{/if}}\n{{> i}}", "line 2, column 1: unknown partial 'i'", .p = NULL},
        {"{{#> p}}{{#*inline \"i\"}}1{{/inline}}{{/p}}{{> i}}", "unknown partial 'i'", .p = ""},
        {"{{> p}}", "partial 'p': line 1, column 1: unknown partial 'i'", .p = "{{> i}}"},
        {"{{#> p}}{{> i}}{{/p}}", "line 1, column 9: unknown partial 'i'", .p = ""},
        {"{{#*inline \"i\"}}{{> j}}{{/inline}}", "unknown partial 'j'", .p = NULL},
        {"{{> @partial-block}}", "'@partial-block' is only there inside of partials", .p = NULL},
        {"{{#> p}}{{> @partial-block}}{{/p}}", "'@partial-block' is only there", .p = ""},
        {"{{> @index}}", "'@index' is no partial", .p = NULL},
        {"{{#> p}}x", "'{{#>p' is never closed; add '{{/p}}'", .p = ""},
        {"{{#> p}}x{{/q}}", "'{{/q}}' does not match '{{#>p'", .p = ""},
        {"{{#> p}}x{{else}}y{{/p}}", "this else has no place in '{{#>p}}'", .p = ""},
        {"{{#> p n o}}x{{/p}}", "one context", .p = ""},
        {"{{#> p as |x|}}x{{/p}}", "only blocks have parameters", .p = ""},
        {"{{#*inline \"i\"}}x", "'{{#*inline' is never closed; add '{{/inline}}'", .p = NULL},
        {"{{#*inline}}x{{/inline}}", "takes its name", .p = NULL},
        {"{{#*inline i}}x{{/inline}}", "takes its name", .p = NULL},
        {"{{#*inline \"\"}}x{{/inline}}", "1 to 64 bytes", .p = NULL},
        {"{{#*outline \"i\"}}x{{/outline}}", "unknown decorator 'outline'", .p = NULL},
    };
    EACH(rows, check_refused);
}

static void what_only_a_call_can_tell_is_an_error_of_the_render(void **state)
{
    (void)state;
    static const Row rows[] = {
        {"{{> p}}", "partial 'p': line 1, column 2: there is no '@partial-block'", .p = "x{{> @partial-block}}"},
        {"{{#> q}}{{#*inline \"i\"}}1{{/inline}}{{/q}}{{> p}}", "partial 'p': line 1, column 1: partial 'i' does not exist", .p = "{{> i}}", .q = ""},
        {"{{#> p}}\n{{> (lookup . \"n\")}}{{/p}}", "line 2, column 1: '", .p = "{{> @partial-block}}"},
        {"{{#*inline \"i\"}}{{> i}}{{/inline}}{{> i}}", "more than 32 deep", .p = NULL},
        {"{{#> p}}{{/p}}", "partial 'p': line 1, column 1: blocks and partials are more than 32 deep", .p = "{{#> p}}{{/p}}"},
        {"{{#> p}}{{currency 1 \"x\"}}{{/p}}", "line 1, column 9: 'currency'", .p = "{{> @partial-block}}"},
    };
    EACH(rows, check_fails);
}
// clang-format on

static void an_error_in_a_block_names_the_source_where_it_stands(void **state)
{
    (void)state;
    Row row = {
        "a{{#> p}}\n{{> (lookup . \"n\")}}{{/p}}", "", .p = "{{> @partial-block}}", .q = NULL};
    Error err = {0};
    Buf out;
    buf_init(&out, TEMPLATE_OUTPUT_MAX);
    assert_false(run_row(&row, false, &out, &err));
    assert_int_equal(strncmp(err.text, "line 2, column 1: ", 18), 0);
    buf_done(&out);
}

static void a_lenient_set_takes_what_is_missing_for_nothing(void **state)
{
    (void)state;
    Row row = {"[{{> i}}{{> p}}{{> @partial-block}}]", "", .p = "{{> j}}{{> @partial-block}}"};
    Error err = {0};
    Buf out;
    buf_init(&out, TEMPLATE_OUTPUT_MAX);
    assert_true(run_row(&row, true, &out, &err));
    assert_string_equal(buf_c(&out), "[]");
    buf_done(&out);
}

// `count` inline partials of one source.
static char *many_inlines(unsigned count)
{
    static const char piece[] = "{{#*inline \"i000\"}}{{/inline}}";
    char *text = calloc(count + 1, sizeof piece);
    assert_non_null(text);
    for (unsigned i = 0; i < count; i++) {
        size_t at = strlen(text);
        (void)snprintf(text + at, sizeof piece, "{{#*inline \"i%03d\"}}{{/inline}}", i % 1000);
    }
    return text;
}

static void inline_partials_are_bounded_in_number(void **state)
{
    (void)state;
    char *text = many_inlines(TEMPLATE_PARTIALS_MAX);
    check_row(&(Row){text, "", .p = NULL});
    free(text);
    text = many_inlines(TEMPLATE_PARTIALS_MAX + 1);
    check_refused(&(Row){text, "more than 128 inline partials", .p = NULL});
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_block_is_what_the_partial_calls),
        cmocka_unit_test(a_block_is_the_default_of_a_partial_that_is_not_there),
        cmocka_unit_test(a_block_runs_there_and_means_what_it_means_here),
        cmocka_unit_test(blocks_within_blocks_know_their_own),
        cmocka_unit_test(an_inline_partial_is_there_in_its_body),
        cmocka_unit_test(an_inline_partial_is_there_in_what_its_body_calls),
        cmocka_unit_test(tags_alone_on_their_line_take_it_with_them),
        cmocka_unit_test(what_is_not_there_is_refused),
        cmocka_unit_test(what_only_a_call_can_tell_is_an_error_of_the_render),
        cmocka_unit_test(an_error_in_a_block_names_the_source_where_it_stands),
        cmocka_unit_test(a_lenient_set_takes_what_is_missing_for_nothing),
        cmocka_unit_test(inline_partials_are_bounded_in_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
