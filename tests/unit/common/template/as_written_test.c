// SPDX-License-Identifier: Apache-2.0
// A rendering that shows its tags in the place of values: what it was rendered with is not in it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/template/template.h"

typedef struct Row {
    TemplateEscape escape;
    const char *source;
    const char *expected;
} Row;

static const char VARIABLES[] =
    "{\"name\": \"Alice\", \"vip\": true, \"total\": 19.5, \"at\": \"2026-11-27T10:00:00Z\","
    " \"lines\": [{\"title\": \"Book\"}, {\"title\": \"Pen\"}]}";

static void render(const Row *row, Buf *out)
{
    Error err = {0};
    TemplateContext context = {.as_written = true};
    json_t *variables = json_loads(VARIABLES, 0, NULL);
    Template *tpl = template_compile(str_from(row->source), row->escape, NULL, &err);
    if (tpl == NULL || !template_render_in(tpl, &context, variables, out, &err)) {
        fail_msg("%s: %s", row->source, err.text);
    }
    template_free(tpl);
    json_decref(variables);
}

static void values_show_as_their_tags_and_conditions_hold(void **state)
{
    (void)state;
    // clang-format off
    static const Row rows[] = {
        {TEMPLATE_ESCAPE_HTML, "<p>Hello {{name}}, {{{name}}}{{&name}}</p>", "<p>Hello {{name}}, {{{name}}}{{&name}}</p>"},
        {TEMPLATE_ESCAPE_HTML, "{{#if vip}}<b>{{ name }}</b>{{else}}none{{/if}}!", "<b>{{ name }}</b>!"},
        {TEMPLATE_ESCAPE_NONE, "{{#each lines}}{{@index}} {{title}};{{/each}}", "{{@index}} {{title}};{{@index}} {{title}};"},
        {TEMPLATE_ESCAPE_NONE, "{{date at \"yyyy }} MM\"}} {{missing}}", "{{date at \"yyyy }} MM\"}} {{missing}}"},
        {TEMPLATE_ESCAPE_JSON, "{\"to\": \"{{default name \"x\"}}\"}", "{\"to\": \"{{default name \\\"x\\\"}}\"}"},
        {TEMPLATE_ESCAPE_HTML, "{{name}}", "{{name}}"},
        {TEMPLATE_ESCAPE_HTML, "{{#*inline \"who\"}}[{{name}}]{{/inline}}{{> who}}", "[{{name}}]"},
        {TEMPLATE_ESCAPE_HTML, "<a href=\"{{name}}\" style=\"color:{{name}}\">", "<a href=\"{{name}}\" style=\"color:{{name}}\">"},
        {TEMPLATE_ESCAPE_HTML, "{{#if (eq name \"Alice\")}}A{{else if (lt total 20)}}B{{else}}C{{/if}}{{#unless (gt total 3)}}D{{else}}E{{/unless}}.", "ABCDE."},
        {TEMPLATE_ESCAPE_HTML, "{{#if (eq name \"Bob\")}}{{#if vip}}v{{else}}{{/if}}{{#if none}}n{{/if}}{{/if}}{{#with (lookup lines 9)}}w{{/with}}.", "vw."},
        {TEMPLATE_ESCAPE_HTML, "{{#*inline \"is\"}}{{#if it}}yes{{else}}no{{/if}}{{/inline}}{{> is it=(eq name \"Bob\")}}", "yes"},
        {TEMPLATE_ESCAPE_HTML, "{{date at zone=name}} {{currency total name}}", "{{date at zone=name}} {{currency total name}}"},
    };
    // clang-format on
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        Buf out;
        buf_init(&out, TEMPLATE_OUTPUT_MAX);
        render(&rows[i], &out);
        assert_string_equal(buf_c(&out), rows[i].expected);
        buf_done(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_show_as_their_tags_and_conditions_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
