// SPDX-License-Identifier: Apache-2.0
// The rules of the Mustache specification (interpolation, sections, inverted sections, partials,
// comments), each as a row of our own. Names are looked up in the contexts around, an unknown
// partial is nothing, an indented partial indents its own lines only.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/template/template.h"

typedef struct Row {
    const char *rule;
    const char *source;
    const char *json;
    const char *expected;
    const char *partial; // called "p"; NULL: there is none
    const char *other;   // called "q"
} Row;

static void check_row(const Row *row)
{
    Error err = {0};
    json_t *variables = json_loads(row->json, JSON_DECODE_ANY, NULL);
    assert_non_null(variables);
    TemplateSet *set = template_set_new();
    template_set_allow_missing(set);
    if (row->partial != NULL) {
        assert_true(
            template_set_add(set, STR("p"), str_from(row->partial), TEMPLATE_ESCAPE_HTML, &err));
    }
    if (row->other != NULL) {
        assert_true(
            template_set_add(set, STR("q"), str_from(row->other), TEMPLATE_ESCAPE_HTML, &err));
    }
    Template *tpl = template_compile(str_from(row->source), TEMPLATE_ESCAPE_HTML, set, &err);
    if (tpl == NULL) {
        fail_msg("%s: %s", row->rule, err.text);
    }
    Buf out;
    buf_init(&out, TEMPLATE_OUTPUT_MAX);
    if (!template_render(tpl, variables, &out, &err)) {
        fail_msg("%s: %s", row->rule, err.text);
    }
    if (!str_eq(buf_view(&out), str_from(row->expected))) {
        fail_msg(
            "%s\nsource:   %s\nexpected: [%s]\ngot:      [%s]", row->rule, row->source,
            row->expected, buf_c(&out));
    }
    buf_done(&out);
    template_free(tpl);
    template_set_free(set);
    json_decref(variables);
}

#define CHECK(rows)                                                                                \
    for (size_t i = 0; i < sizeof(rows) / sizeof *(rows); i++) {                                   \
        check_row(&(rows)[i]);                                                                     \
    }

// clang-format off
static void interpolation(void **state)
{
    (void)state;
    static const Row rows[] = {
        {"text without tags stays", "one {two} } three\n", "{}", "one {two} } three\n", NULL, NULL},
        {"a name is replaced", "Dear {{who}},", "{\"who\":\"Ann\"}", "Dear Ann,", NULL, NULL},
        {"two braces escape", "{{x}}", "{\"x\":\"& \\\" < >\"}", "&amp; &quot; &lt; &gt;", NULL, NULL},
        {"three braces do not", "{{{x}}}", "{\"x\":\"& \\\" < >\"}", "& \" < >", NULL, NULL},
        {"nor does an ampersand", "{{&x}}", "{\"x\":\"& \\\" < >\"}", "& \" < >", NULL, NULL},
        {"integers", "{{n}}/{{{n}}}/{{&n}}", "{\"n\":85}", "85/85/85", NULL, NULL},
        {"decimals", "{{n}}/{{{n}}}/{{&n}}", "{\"n\":1.21}", "1.21/1.21/1.21", NULL, NULL},
        {"null is nothing", "({{n}}{{{n}}}{{&n}})", "{\"n\":null}", "()", NULL, NULL},
        {"a missing name is nothing", "({{n}}{{{n}}}{{&n}})", "{}", "()", NULL, NULL},
        {"dots walk down", "{{a.b.c.d.e}}", "{\"a\":{\"b\":{\"c\":{\"d\":{\"e\":\"deep\"}}}}}", "deep", NULL, NULL},
        {"a broken chain is nothing", "({{a.b.c}})", "{\"a\":{}}", "()", NULL, NULL},
        {"a broken chain is not looked for elsewhere", "({{a.b.name}})", "{\"a\":{\"b\":{}},\"name\":\"x\",\"b\":{\"name\":\"y\"}}", "()", NULL, NULL},
        {"the first name is looked for in the contexts around", "{{#s}}{{a.b}}{{/s}}", "{\"s\":{\"x\":1},\"a\":{\"b\":\"found\"}}", "found", NULL, NULL},
        {"and binds the chain where it is found", "{{#s}}({{b.c}}){{/s}}", "{\"s\":{\"b\":{}},\"b\":{\"c\":\"ERROR\"}}", "()", NULL, NULL},
        {"a key with a dot is not a chain", "({{a.b}})", "{\"a.b\":\"x\"}", "()", NULL, NULL},
        {"nor does it hide one", "{{a.b}}", "{\"a.b\":\"x\",\"a\":{\"b\":\"y\"}}", "y", NULL, NULL},
        {"the dot is the context", "{{.}}", "\"<w>\"", "&lt;w&gt;", NULL, NULL},
        {"the dot, not escaped", "{{{.}}}{{&.}}", "\"<w>\"", "<w><w>", NULL, NULL},
        {"the dot of a number", "{{.}}", "85", "85", NULL, NULL},
        {"white space around stays", "| {{x}} |{{{x}}}| {{&x}} |", "{\"x\":\"-\"}", "| - |-| - |", NULL, NULL},
        {"a value alone on its line keeps it", "  {{x}}\n  {{{x}}}\n  {{&x}}\n", "{\"x\":\"-\"}", "  -\n  -\n  -\n", NULL, NULL},
        {"white space inside does not matter", "|{{ x }}{{{ x }}}{{& x }}|", "{\"x\":\"-\"}", "|---|", NULL, NULL},
    };
    CHECK(rows);
}

static void sections(void **state)
{
    (void)state;
    static const Row rows[] = {
        {"true", "({{#on}}x{{/on}})", "{\"on\":true}", "(x)", NULL, NULL},
        {"false", "({{#on}}x{{/on}})", "{\"on\":false}", "()", NULL, NULL},
        {"null", "({{#on}}x{{/on}})", "{\"on\":null}", "()", NULL, NULL},
        {"missing", "({{#on}}x{{/on}})", "{}", "()", NULL, NULL},
        {"an object becomes the context", "{{#o}}{{name}}{{/o}}", "{\"o\":{\"name\":\"Joe\"}}", "Joe", NULL, NULL},
        {"parent contexts", "{{#s}}{{a}}-{{b}}-{{c.d}}{{/s}}", "{\"a\":\"A\",\"b\":\"no\",\"s\":{\"b\":\"B\"},\"c\":{\"d\":\"D\"}}", "A-B-D", NULL, NULL},
        {"a value is dot and name", "{{#v}}{{.}} is {{v}}{{/v}}", "{\"v\":\"x\"}", "x is x", NULL, NULL},
        {"lists inside of lists", "{{#a}}{{#b}}{{t.low}}{{m}}.{{#c}}{{t.up}}{{m}}{{n}}.{{/c}}{{/b}}{{/a}}",
         "{\"a\":[{\"t\":{\"up\":\"A\",\"low\":\"a\"},\"b\":[{\"m\":\"1\",\"c\":[{\"n\":\"x\"},{\"n\":\"y\"}]}]}]}", "a1.A1x.A1y.", NULL, NULL},
        {"deeply nested contexts", "{{#a}}{{one}}{{#b}}{{one}}{{two}}{{#c.d}}{{one}}{{two}}{{three}}{{two}}{{one}}{{/c.d}}{{two}}{{one}}{{/b}}{{one}}{{/a}}",
         "{\"a\":{\"one\":1},\"b\":{\"two\":2},\"c\":{\"d\":{\"three\":3}}}", "11212321211", NULL, NULL},
        {"a list is walked", "{{#l}}{{n}}{{/l}}", "{\"l\":[{\"n\":1},{\"n\":2},{\"n\":3}]}", "123", NULL, NULL},
        {"an empty list is false", "({{#l}}x{{/l}})", "{\"l\":[]}", "()", NULL, NULL},
        {"the same section twice", "{{#b}}\n* 1\n{{/b}}\n* {{two}}\n{{#b}}\n* 3\n{{/b}}\n", "{\"b\":true,\"two\":\"2\"}", "* 1\n* 2\n* 3\n", NULL, NULL},
        {"nested, all true", "|A{{#b}}B{{#b}}C{{/b}}D{{/b}}E|", "{\"b\":true}", "|ABCDE|", NULL, NULL},
        {"nested, all false", "|A{{#b}}B{{#b}}C{{/b}}D{{/b}}E|", "{\"b\":false}", "|AE|", NULL, NULL},
        {"the dot of texts, numbers and decimals", "{{#l}}({{.}}){{/l}}", "{\"l\":[\"a\",1,2.5]}", "(a)(1)(2.5)", NULL, NULL},
        {"the dot of lists", "{{#l}}({{#.}}{{.}}{{/.}}){{/l}}", "{\"l\":[[1,2],[\"a\"]]}", "(12)(a)", NULL, NULL},
        {"the dot is escaped or not", "{{#l}}{{.}}{{{.}}}{{&.}}{{/l}}", "{\"l\":[\"<\"]}", "&lt;<<", NULL, NULL},
        {"the root may be a list", "{{#.}}({{v}}){{/.}}", "[{\"v\":1},{\"v\":2}]", "(1)(2)", NULL, NULL},
        {"dotted names", "({{#a.b.c}}x{{/a.b.c}}{{#a.b.d}}y{{/a.b.d}}{{#a.x.c}}z{{/a.x.c}})", "{\"a\":{\"b\":{\"c\":true,\"d\":false}}}", "(x)", NULL, NULL},
        {"white space around stays", " | {{#b}}\t|\t{{/b}} | \n", "{\"b\":true}", " | \t|\t | \n", NULL, NULL},
        {"lines with only a tag go", "a\n{{#b}}\nx\n{{/b}}\nc", "{\"b\":true}", "a\nx\nc", NULL, NULL},
        {"indented ones too", "a\n  {{#b}}\nx\n  {{/b}}\nc", "{\"b\":true}", "a\nx\nc", NULL, NULL},
        {"at the beginning", "  {{#b}}\n#{{/b}}\n/", "{\"b\":true}", "#\n/", NULL, NULL},
        {"at the end", "#{{#b}}\n/\n  {{/b}}", "{\"b\":true}", "#\n/\n", NULL, NULL},
        {"\\r\\n", "|\r\n{{#b}}\r\n{{/b}}\r\n|", "{\"b\":true}", "|\r\n|", NULL, NULL},
        {"white space inside does not matter", "|{{# b }}={{/ b }}|", "{\"b\":true}", "|=|", NULL, NULL},
    };
    CHECK(rows);
}

static void inverted_sections(void **state)
{
    (void)state;
    static const Row rows[] = {
        {"false", "({{^b}}x{{/b}})", "{\"b\":false}", "(x)", NULL, NULL},
        {"true", "({{^b}}x{{/b}})", "{\"b\":true}", "()", NULL, NULL},
        {"null", "({{^b}}x{{/b}})", "{\"b\":null}", "(x)", NULL, NULL},
        {"missing", "({{^b}}x{{/b}})", "{}", "(x)", NULL, NULL},
        {"an object", "({{^b}}x{{/b}})", "{\"b\":{\"a\":1}}", "()", NULL, NULL},
        {"a list", "({{^b}}x{{/b}})", "{\"b\":[{}]}", "()", NULL, NULL},
        {"an empty list", "({{^b}}x{{/b}})", "{\"b\":[]}", "(x)", NULL, NULL},
        {"a name of the contexts around", "{{#s}}({{^b}}x{{/b}}){{/s}}", "{\"s\":{\"a\":1},\"b\":true}", "()", NULL, NULL},
        {"nested", "|A{{^b}}B{{^b}}C{{/b}}D{{/b}}E|", "{\"b\":false}", "|ABCDE|", NULL, NULL},
        {"dotted names", "({{^a.b}}x{{/a.b}}{{^a.c}}y{{/a.c}})", "{\"a\":{\"b\":true}}", "(y)", NULL, NULL},
        {"lines with only a tag go", "a\n  {{^b}}\nx\n\t{{/b}}\nc", "{}", "a\nx\nc", NULL, NULL},
        {"white space inside does not matter", "|{{^ b }}={{/ b }}|", "{}", "|=|", NULL, NULL},
    };
    CHECK(rows);
}

static void partials(void **state)
{
    (void)state;
    static const Row rows[] = {
        {"a partial", "({{>p}})", "{}", "(text)", "text", NULL},
        {"an unknown one is nothing", "({{>none}})", "{}", "()", NULL, NULL},
        {"sees the context", "({{>p}})", "{\"t\":\"<\"}", "(*&lt;*)", "*{{t}}*", NULL},
        {"and the contexts around", "{{#s}}{{>p}}{{/s}}", "{\"t\":1,\"s\":[{},{\"t\":2}]}", "12", "{{t}}", NULL},
        {"may call itself", "{{>p}}", "{\"c\":\"X\",\"n\":[{\"c\":\"Y\",\"n\":[]}]}", "X<Y<>>", "{{c}}<{{#n}}{{>p}}{{/n}}>", NULL},
        {"may call another", "{{>p}}", "{\"t\":\"x\"}", "*x x!*", "*{{t}} {{>q}}*", "{{t}}!"},
        {"white space around stays", "| {{>p}} |", "{}", "| \t|\t |", "\t|\t", NULL},
        {"inline: not indented", "  {{d}}  {{> p}}\n", "{\"d\":\"|\"}", "  |  >\n>\n", ">\n>", NULL},
        {"\\r\\n", "|\r\n{{>p}}\r\n|", "{}", "|\r\n>|", ">", NULL},
        {"at the beginning", "  {{>p}}\n>", "{}", "  >\n  >>", ">\n>", NULL},
        {"at the end", ">\n  {{>p}}", "{}", ">\n  >\n  >", ">\n>", NULL},
        {"only its own lines are indented", "\\\n {{>p}}\n/\n", "{\"c\":\"<\\n->\"}", "\\\n |\n <\n->\n |\n/\n", "|\n{{{c}}}\n|\n", NULL},
        {"indentation adds up", "{{#on}}\n  {{>p}}\n{{/on}}\n", "{\"on\":true,\"v\":\"x\\ny\"}", "  a\n    x\ny\n  b\n", "a\n  {{>q}}\nb\n", "{{v}}\n"},
        {"tags alone on a line leave nothing to indent", "  {{>p}}\nz", "{\"l\":[1,2]}", "  <\n  1\n  2\n  >\nz", "<\n{{#l}}\n{{.}}\n{{/l}}\n>\n", NULL},
        {"white space inside does not matter", "|{{> p }}|", "{}", "|[]|", "[]", NULL},
    };
    CHECK(rows);
}

static void comments(void **state)
{
    (void)state;
    static const Row rows[] = {
        {"inline", "12345{{! gone }}67890", "{}", "1234567890", NULL, NULL},
        {"over lines", "12345{{!\n  gone\n}}67890\n", "{}", "1234567890\n", NULL, NULL},
        {"alone on its line", "Begin.\n{{! gone }}\nEnd.\n", "{}", "Begin.\nEnd.\n", NULL, NULL},
        {"indented", "Begin.\n  {{! gone }}\nEnd.\n", "{}", "Begin.\nEnd.\n", NULL, NULL},
        {"\\r\\n", "|\r\n{{! gone }}\r\n|", "{}", "|\r\n|", NULL, NULL},
        {"at the beginning", "  {{! gone }}\n!", "{}", "!", NULL, NULL},
        {"at the end", "!\n  {{! gone }}", "{}", "!\n", NULL, NULL},
        {"over lines, alone", "Begin.\n{{!\n\ngone\n\n}}\nEnd.\n", "{}", "Begin.\nEnd.\n", NULL, NULL},
        {"not alone", "  12 {{! 34 }}\n", "{}", "  12 \n", NULL, NULL},
        {"white space around stays", "12345 {{! gone }} 67890", "{}", "12345  67890", NULL, NULL},
    };
    CHECK(rows);
}
// clang-format on

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(interpolation),     cmocka_unit_test(sections),
        cmocka_unit_test(inverted_sections), cmocka_unit_test(partials),
        cmocka_unit_test(comments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
