// SPDX-License-Identifier: Apache-2.0
// The language, row by row: source, variables, what comes out. Checked against Handlebars 4.7.10.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/template/template.h"

typedef struct Row {
    const char *source;
    const char *json;
    const char *expected;
} Row;

static void check_row(const Row *row, TemplateEscape escape)
{
    Error err = {0};
    json_t *variables = json_loads(row->json, JSON_DECODE_ANY, NULL);
    assert_non_null(variables);
    Template *tpl = template_compile(str_from(row->source), escape, NULL, &err);
    if (tpl == NULL) {
        fail_msg("%s: %s", row->source, err.text);
    }
    Buf out;
    buf_init(&out, TEMPLATE_OUTPUT_MAX);
    if (!template_render(tpl, variables, &out, &err)) {
        fail_msg("%s: %s", row->source, err.text);
    }
    if (!str_eq(buf_view(&out), str_from(row->expected))) {
        fail_msg(
            "source:   %s\nexpected: [%s]\ngot:      [%s]", row->source, row->expected,
            buf_c(&out));
    }
    buf_done(&out);
    template_free(tpl);
    json_decref(variables);
}

#define CHECK(rows, escape)                                                                        \
    for (size_t i = 0; i < sizeof(rows) / sizeof *(rows); i++) {                                   \
        check_row(&(rows)[i], (escape));                                                           \
    }

// clang-format off
// Handlebars knows the exact name only: common/names/DECISIONS.md.
static void a_variable_is_found_in_any_spelling(void **state)
{
    (void)state;
    static const Row rows[] = {
        {"{{order_id}} {{fullName}}", "{\"orderId\":7,\"full_name\":\"Ann\"}", "7 Ann"},
        {"{{order.order_id}}", "{\"Order\":{\"OrderId\":7}}", "7"},
        {"{{#each order_lines}}{{unit_price}};{{/each}}", "{\"orderLines\":[{\"unitPrice\":1},{\"unit_price\":2}]}", "1;2;"},
        {"{{#if tracking_number}}{{tracking_number}}{{else}}none{{/if}}", "{\"trackingNumber\":\"J\"}", "J"},
        {"{{#if coupon}}yes{{else}}no{{/if}}", "{\"couponCode\":\"x\"}", "no"},
        {"{{a_b}}", "{\"aB\":1,\"a_b\":2}", "2"},
        {"{{a_b}}", "{\"aB\":1,\"a_b\":null}", ""},
    };
    CHECK(rows, TEMPLATE_ESCAPE_HTML);
}

static void variables_are_found_by_their_path(void **state)
{
    (void)state;
    static const Row rows[] = {
        {"", "{}", ""},
        {"no tags { at } all", "{}", "no tags { at } all"},
        {"Hi {{name}}!", "{\"name\":\"Ann\"}", "Hi Ann!"},
        {"{{ order.id }}", "{\"order\":{\"id\":7}}", "7"},
        {"{{order/id}}", "{\"order\":{\"id\":7}}", "7"},
        {"{{items.0.name}}{{items.1}}{{items.[1]}}", "{\"items\":[{\"name\":\"a\"},\"b\"]}", "abb"},
        {"{{items.2}}{{items.01}}", "{\"items\":[\"a\",\"b\"]}", ""},
        {"{{name.[0]}}{{name.[1]}}{{name.[2]}}{{name.[3]}}{{name.01}}", "{\"name\":\"Zo\xc3\xab\"}", "Zo\xc3\xab"},
        {"{{name.[1]}}|{{name.[2]}}{{name.[3]}}|{{name.[4]}}|{{name.[5]}}", "{\"name\":\"h\xc3\xa9\xf0\x9f\x98\x80z\"}", "\xc3\xa9|\xf0\x9f\x98\x80|z|"},
        {"{{#if name.[0]}}{{name.[0]}}.{{else}}none{{/if}} {{#each all}}{{this.[0]}}{{/each}}", "{\"name\":\"\",\"all\":[\"Ann\",\"Bo\",7,null]}", "none AB"},
        {"{{items.length}} {{name.length}}", "{\"items\":[1,2],\"name\":\"h\xc3\xa9\xf0\x9f\x98\x80\"}", "2 4"},
        {"{{[a b].[c]}}", "{\"a b\":{\"c\":1}}", "1"},
        {"{{[a\\]b]}}", "{\"a]b\":1}", "1"},
        {"{{\"a b\"}}{{'c'}}{{12}}{{true}}", "{\"a b\":1,\"c\":2,\"12\":3,\"true\":4}", "1234"},
        {"{{missing}}{{missing.more}}{{name.more}}", "{\"name\":\"x\"}", ""},
        {"{{this.a}}{{./a}}{{this/a}}", "{\"a\":1}", "111"},
        {"{{this}}{{.}}", "\"x\"", "xx"},
        {"{{@root.a}}{{#with b}}{{@root.a}}{{/with}}", "{\"a\":1,\"b\":{}}", "11"},
        {"{{\xc3\xbcmlaut}}", "{\"\xc3\xbcmlaut\":1}", "1"},
        {"{{a-b}}{{a:b}}{{$x}}", "{\"a-b\":1,\"a:b\":2,\"$x\":3}", "123"},
    };
    CHECK(rows, TEMPLATE_ESCAPE_HTML);
}

static void values_print_as_javascript_prints_them(void **state)
{
    (void)state;
    static const Row rows[] = {
        {"{{a}}", "{\"a\":null}", ""},
        {"{{a}} {{b}}", "{\"a\":true,\"b\":false}", "true false"},
        {"{{a}} {{b}}", "{\"a\":0,\"b\":-9223372036854775808}", "0 -9223372036854775808"},
        {"{{a}} {{b}} {{c}}", "{\"a\":1.0,\"b\":1.5,\"c\":-0.25}", "1 1.5 -0.25"},
        {"{{a}} {{b}} {{c}}", "{\"a\":0.1,\"b\":0.30000000000000004,\"c\":123456.789}", "0.1 0.30000000000000004 123456.789"},
        {"{{a}} {{b}} {{c}}", "{\"a\":1e21,\"b\":1e20,\"c\":1.5e300}", "1e+21 100000000000000000000 1.5e+300"},
        {"{{a}} {{b}} {{c}}", "{\"a\":0.000001,\"b\":1e-7,\"c\":-0.0}", "0.000001 1e-7 0"},
        {"{{a}}", "{\"a\":[1,\"b\",null,[2,3],{}]}", "1,b,,2,3,[object Object]"},
        {"{{a}}", "{\"a\":{}}", "[object Object]"},
    };
    CHECK(rows, TEMPLATE_ESCAPE_HTML);
}

static void html_is_escaped_unless_asked_otherwise(void **state)
{
    (void)state;
    static const Row rows[] = {
        {"{{a}}", "{\"a\":\"&<>\\\"'`=\"}", "&amp;&lt;&gt;&quot;&#x27;&#x60;&#x3D;"},
        {"{{{a}}}|{{&a}}|{{& a }}|{{~{a}~}}", "{\"a\":\"<\"}", "<|<|<|<"},
        {"{{a}}", "{\"a\":[\"<\",\"&\"]}", "&lt;,&amp;"},
        {"{{#each a}}{{@key}}{{/each}}", "{\"a\":{\"<k>\":1}}", "&lt;k&gt;"},
    };
    CHECK(rows, TEMPLATE_ESCAPE_HTML);
}

static void text_is_not_escaped(void **state)
{
    (void)state;
    static const Row rows[] = {
        {"{{a}}{{{a}}}", "{\"a\":\"<&>\"}", "<&><&>"},
    };
    CHECK(rows, TEMPLATE_ESCAPE_NONE);
}

static void conditions_know_what_is_true(void **state)
{
    (void)state;
    static const Row rows[] = {
        {"{{#if a}}y{{else}}n{{/if}}", "{\"a\":true}", "y"},
        {"{{#if a}}y{{else}}n{{/if}}", "{\"a\":{}}", "y"},
        {"{{#if a}}y{{else}}n{{/if}}", "{\"a\":\"0\"}", "y"},
        {"{{#if a}}y{{else}}n{{/if}}", "{\"a\":[]}", "n"},
        {"{{#if a}}y{{else}}n{{/if}}", "{\"a\":\"\"}", "n"},
        {"{{#if a}}y{{else}}n{{/if}}", "{\"a\":0}", "n"},
        {"{{#if a}}y{{else}}n{{/if}}", "{\"a\":0.0}", "n"},
        {"{{#if a}}y{{else}}n{{/if}}", "{\"a\":false}", "n"},
        {"{{#if a}}y{{else}}n{{/if}}", "{\"a\":null}", "n"},
        {"{{#if a}}y{{^}}n{{/if}}", "{}", "n"},
        {"{{#if a includeZero=true}}y{{else}}n{{/if}}", "{\"a\":0}", "y"},
        {"{{#if a}}1{{else if b}}2{{else if c}}3{{else}}4{{/if}}", "{\"c\":1}", "3"},
        {"{{#if a}}1{{else if b}}2{{else if c}}3{{else}}4{{/if}}", "{}", "4"},
        {"{{#if a}}1{{else each b}}{{this}}{{else}}none{{/if}}", "{\"b\":[]}", "none"},
        {"{{#unless a}}y{{else}}n{{/unless}}", "{\"a\":1}", "n"},
        {"{{#unless a}}y{{/unless}}", "{}", "y"},
        {"{{^if a}}n{{/if}}", "{}", "n"},
        {"{{#if true}}y{{/if}}{{#if \"\"}}n{{/if}}", "{}", "y"},
    };
    CHECK(rows, TEMPLATE_ESCAPE_HTML);
}

static void each_walks_arrays_and_objects(void **state)
{
    (void)state;
    static const Row rows[] = {
        {"{{#each a}}{{@index}}{{this}}{{#unless @last}},{{/unless}}{{/each}}", "{\"a\":[\"x\",\"y\"]}", "0x,1y"},
        {"{{#each a}}{{#if @first}}[{{/if}}{{n}}{{#if @last}}]{{/if}}{{/each}}", "{\"a\":[{\"n\":1},{\"n\":2}]}", "[12]"},
        {"{{#each a}}{{@key}}={{this}};{{/each}}", "{\"a\":{\"x\":1,\"y\":2}}", "x=1;y=2;"},
        {"{{#each a}}{{@key}}{{/each}}", "{\"a\":[5,6]}", "01"},
        {"{{#each a}}x{{else}}none{{/each}}", "{\"a\":[]}", "none"},
        {"{{#each a}}x{{else}}none{{/each}}", "{\"a\":{}}", "none"},
        {"{{#each a}}x{{else}}none{{/each}}", "{\"a\":\"text\"}", "none"},
        {"{{#each a}}{{../b}}{{this}}{{/each}}", "{\"a\":[1,2],\"b\":\"-\"}", "-1-2"},
        {"{{#each a}}{{#if this}}{{../b}}{{/if}}{{/each}}", "{\"a\":[1],\"b\":\"-\"}", "-"},
        {"{{#each a}}{{#each this}}{{@../index}}{{@index}}{{../../b}} {{/each}}{{/each}}", "{\"a\":[[7],[8,9]],\"b\":\"-\"}", "00- 10- 11- "},
        {"{{#each .}}{{.}}{{/each}}", "[1,2]", "12"},
        {"{{#each a}}{{b}}{{this.b}}{{./b}}{{/each}}", "{\"a\":[{}],\"b\":\"outer\"}", "outer"},
        {"{{#each a}}{{#if b}}y{{else}}n{{/if}}{{/each}}", "{\"a\":[{}],\"b\":1}", "n"},
    };
    CHECK(rows, TEMPLATE_ESCAPE_HTML);
}

static void with_and_sections_enter_a_context(void **state)
{
    (void)state;
    static const Row rows[] = {
        {"{{#with a}}{{b}}{{../c}}{{/with}}", "{\"a\":{\"b\":1},\"c\":2}", "12"},
        {"{{#with a}}x{{else}}none{{/with}}", "{}", "none"},
        {"{{#with a}}{{this}}{{/with}}", "{\"a\":0}", "0"},
        {"{{#with .}}{{../a}}{{/with}}", "{\"a\":1}", ""},
        {"{{#a}}{{b}}{{/a}}", "{\"a\":{\"b\":1}}", "1"},
        {"{{#a}}{{b}}{{/a}}", "{\"a\":[{\"b\":1},{\"b\":2}]}", "12"},
        {"{{#a}}{{b}}{{/a}}", "{\"a\":true,\"b\":1}", "1"},
        {"{{#a}}x{{else}}y{{/a}}", "{\"a\":[]}", "y"},
        {"{{#a}}{{this}}{{/a}}", "{\"a\":0}", "0"},
        {"{{^a}}y{{/a}}", "{\"a\":false}", "y"},
        {"{{^a}}y{{else}}n{{/a}}", "{\"a\":1}", "n"},
        {"{{#a.b}}{{c}}{{/a.b}}", "{\"a\":{\"b\":{\"c\":1}}}", "1"},
        {"{{#.}}{{.}}{{/.}}", "[\"a\",\"b\"]", "ab"},
        {"{{#a}}{{@index}}{{@last}} {{/a}}", "{\"a\":[1,2]}", "0false 1true "},
    };
    CHECK(rows, TEMPLATE_ESCAPE_HTML);
}

static void comments_and_escaped_tags_are_no_tags(void **state)
{
    (void)state;
    static const Row rows[] = {
        {"a{{! no }}b{{!-- no }} --}}c", "{}", "abc"},
        {"a{{!}}b{{!--}}c{{!----}}d", "{}", "abcd"},
        {"\\{{a}} {{a}}", "{\"a\":1}", "{{a}} 1"},
        {"x\\{{a}}\\{{b}}", "{}", "x{{a}}{{b}}"},
        {"\\\\{{a}}", "{\"a\":1}", "\\1"},
        {"\\\\\\{{a}}", "{\"a\":1}", "\\\\1"},
        {"\\{{", "{}", "{{"},
    };
    CHECK(rows, TEMPLATE_ESCAPE_HTML);
}

static void tilde_takes_the_white_space_away(void **state)
{
    (void)state;
    static const Row rows[] = {
        {"a \n {{~b}} c", "{\"b\":1}", "a1 c"},
        {"a {{b~}} \n c", "{\"b\":1}", "a 1c"},
        {"a {{~#if b~}} x {{~else~}} y {{~/if~}} c", "{\"b\":1}", "axc"},
        {"a {{~#if b~}} x {{~else~}} y {{~/if~}} c", "{}", "ayc"},
        {"a {{~! c ~}} b", "{}", "ab"},
        {"a {{~{b}~}} c", "{\"b\":1}", "a1c"},
        {"a {{~!-- c --~}} b", "{}", "ab"},
        {"{{#each a~}} {{this}} {{~/each}}", "{\"a\":[1,2]}", "12"},
    };
    CHECK(rows, TEMPLATE_ESCAPE_HTML);
}

static void tags_alone_on_a_line_take_it_with_them(void **state)
{
    (void)state;
    static const Row rows[] = {
        {"a\n{{#if b}}\nx\n{{/if}}\nc\n", "{\"b\":1}", "a\nx\nc\n"},
        {"a\n  {{#if b}}\n  x\n  {{else}}\n  y\n  {{/if}}\nc", "{}", "a\n  y\nc"},
        {"a\r\n{{#if b}}\r\nx\r\n{{/if}}\r\nc", "{\"b\":1}", "a\r\nx\r\nc"},
        {"a\n  {{! note }}\nb", "{}", "a\nb"},
        {"a\n  {{!-- note\n more --}}  \nb", "{}", "a\nb"},
        {"{{! note }}\nb", "{}", "b"},
        {"a\n{{! note }}", "{}", "a\n"},
        {"a {{! note }}\nb", "{}", "a \nb"},
        {"  {{a}}\n", "{\"a\":1}", "  1\n"},
        {"{{#each a}}\n* {{this}}\n{{/each}}\n", "{\"a\":[1,2]}", "* 1\n* 2\n"},
        {" {{#b}}YES{{/b}}\n {{#b}}GOOD{{/b}}\n", "{\"b\":true}", " YES\n GOOD\n"},
        {" | {{#b}} {{! Important }}\n {{/b}} | \n", "{\"b\":true}", " |  \n  | \n"},
        {"#{{#b}}\n/\n  {{/b}}", "{\"b\":true}", "#\n/\n"},
        {"{{#if a}}\n1\n{{else if b}}\n2\n{{/if}}\n", "{\"b\":1}", "2\n"},
    };
    CHECK(rows, TEMPLATE_ESCAPE_HTML);
}
// clang-format on

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_variable_is_found_in_any_spelling),
        cmocka_unit_test(variables_are_found_by_their_path),
        cmocka_unit_test(values_print_as_javascript_prints_them),
        cmocka_unit_test(html_is_escaped_unless_asked_otherwise),
        cmocka_unit_test(text_is_not_escaped),
        cmocka_unit_test(conditions_know_what_is_true),
        cmocka_unit_test(each_walks_arrays_and_objects),
        cmocka_unit_test(with_and_sections_enter_a_context),
        cmocka_unit_test(comments_and_escaped_tags_are_no_tags),
        cmocka_unit_test(tilde_takes_the_white_space_away),
        cmocka_unit_test(tags_alone_on_a_line_take_it_with_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
