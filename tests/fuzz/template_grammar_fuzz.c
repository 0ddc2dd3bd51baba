// SPDX-License-Identifier: Apache-2.0
// links: stentor_template
// Templates built by their grammar (blocks, helpers, partials, white space control, HTML around
// them) over values that are as odd as JSON has them. Law: what the grammar makes compiles; it
// renders, twice the same, or ends as permanent; no URL (of an attribute, of CSS, of a refresh) has
// a scheme that runs.
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "common/template/template.h"
#include "tests/fuzz/choices.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { DEPTH_MAX = 6, NODES_MAX = 6, SOURCE_MAX = 32 * 1024, CPU_MAX_US = 50 };

static const char *const names[] = {
    "a",   "s",    "n",        "o",       "l",     "this", "../a",    "@root.s",
    "o.k", "l.0",  "s.length", "@index",  "l.[0]", "@key", "missing", "big",
    "u",   "html", "@first",   "../../n", "s.[0]", "s.4",  "u.0",     "big.[1]",
};
static const char *const literals[] = {
    "1",    "0",      "-3",           "\"x\"",        "'EUR'", "true",   "null",      "undefined",
    "\"\"", "'1e31'", "\"#,##0.00\"", "'2026-11-22'", "20",    "'java'", "'script:'", "':'",
};

static void put_call(Choices *choices, int depth, Buf *out);

static void put_argument(Choices *choices, int depth, Buf *out)
{
    switch (choose(choices, 4)) {
    case 0:
        buf_str(out, CHOOSE_TEXT(choices, literals));
        break;
    case 1:
        if (depth > 0) {
            buf_char(out, '(');
            put_call(choices, depth - 1, out);
            buf_char(out, ')');
            break;
        }
        // fall through
    default:
        buf_str(out, CHOOSE_TEXT(choices, names));
    }
}

static void put_call(Choices *choices, int depth, Buf *out)
{
    static const struct {
        const char *name;
        uint32_t count;
        const char *named;
    } helpers[] = {
        {"not", 1, ""},
        {"eq", 2, ""},
        {"ne", 2, ""},
        {"lt", 2, ""},
        {"gte", 2, ""},
        {"and", 3, ""},
        {"or", 2, ""},
        {"default", 2, ""},
        {"url", 1, ""},
        {"upper", 1, ""},
        {"lower", 1, "locale"},
        {"truncate", 2, ""},
        {"truncate", 3, ""},
        {"lookup", 2, ""},
        {"number", 1, "digits"},
        {"number", 2, "locale"},
        {"date", 1, "zone"},
        {"date", 2, "locale"},
        {"currency", 2, "minor"},
        {"plural", 3, ""},
        {"plural", 1, "other"},
    };
    uint32_t which = choose(choices, sizeof helpers / sizeof *helpers);
    buf_cstr(out, helpers[which].name);
    for (uint32_t i = 0; i < helpers[which].count; i++) {
        buf_char(out, ' ');
        put_argument(choices, depth, out);
    }
    if (helpers[which].named[0] != '\0' && choose(choices, 2) == 1) {
        buf_printf(out, " %s=", helpers[which].named);
        put_argument(choices, depth, out);
    }
}

static void put_body(Choices *choices, int depth, Buf *out);

// An opening with its condition, and the name that closes it.
static const char *put_opening(Choices *choices, int depth, Buf *out)
{
    static const char *const blocks[] = {"if", "unless", "each", "with"};
    static const char *const plain[] = {"a", "s", "o", "l", "n", "missing"};
    const char *tilde = choose(choices, 6) == 1 ? "~" : "";
    uint32_t which = choose(choices, 6);
    if (which >= 4) {
        const char *name = plain[choose(choices, sizeof plain / sizeof *plain)];
        buf_printf(out, "{{%s%c%s}}", tilde, which == 4 ? '#' : '^', name);
        return name;
    }
    buf_printf(out, "{{%s#%s ", tilde, blocks[which]);
    put_argument(choices, depth > 0 ? 2 : 0, out);
    buf_cstr(out, which >= 2 && choose(choices, 3) == 1 ? " as |it at|}}" : "}}");
    return blocks[which];
}

static void put_block(Choices *choices, int depth, Buf *out)
{
    const char *name = put_opening(choices, depth, out);
    put_body(choices, depth - 1, out);
    if (choose(choices, 2) == 1) {
        buf_cstr(out, choose(choices, 3) == 1 ? "{{^}}" : "{{else}}");
        put_body(choices, depth - 1, out);
    }
    buf_printf(out, "{{/%s}}", name);
}

static void put_partial(Choices *choices, int depth, Buf *out)
{
    switch (depth > 0 ? choose(choices, 5) : 0) {
    case 0:
        buf_cstr(out, "{{> p}}");
        break;
    case 1:
        buf_cstr(out, "\n  {{> p a=s}}\n");
        break;
    case 2:
        buf_cstr(out, "{{#> p}}");
        put_body(choices, depth - 1, out);
        buf_cstr(out, "{{/p}}");
        break;
    case 3:
        buf_cstr(out, "{{#> none}}");
        put_body(choices, depth - 1, out);
        buf_cstr(out, "{{/none}}");
        break;
    default:
        buf_cstr(out, "{{#*inline \"q\"}}");
        put_body(choices, depth - 1, out);
        buf_cstr(out, "{{/inline}}{{> q}}");
    }
}

// The tags of HTML that this makes are whole, so that what is in an attribute is known.
static const struct {
    const char *open, *close;
} links[] = {
    {"<a href=\"", "\">"},
    {"<img alt='a>b' src=\"", "\">"},
    {"<FORM\nACTION = \"", "\">"},
    {"<use xlink:href=\"", "\">"},
    {"<p style='a:b;c:url(\"", "\")'>"},
    {"<style>p{a:url(\"", "\") }</style>"},
    {"<meta http-equiv=refresh content='0;url=\"", "\"'>"},
};

static void put_link(Choices *choices, int depth, Buf *out)
{
    uint32_t which = choose(choices, sizeof links / sizeof *links);
    buf_cstr(out, links[which].open);
    for (uint32_t i = choose(choices, 4); i > 0; i--) {
        if (depth > 0 && choose(choices, 4) == 1) {
            buf_cstr(out, "{{#if a}}{{u}}{{else}}{{s}}{{/if}}");
        } else if (choose(choices, 8) == 1) {
            buf_cstr(out, choose(choices, 2) == 1 ? ":" : "java");
        } else {
            buf_cstr(out, "{{");
            put_argument(choices, 0, out);
            buf_cstr(out, "}}");
        }
    }
    buf_cstr(out, links[which].close);
}

static void put_node(Choices *choices, int depth, Buf *out)
{
    static const char *const texts[] = {
        "", "x", " \n", "<p>", "</p>\n", "<b>\xc3\xbc</b>", "\\{{a}}", "{{! c }}"};
    switch (choose(choices, 7)) {
    case 0:
        buf_str(out, CHOOSE_TEXT(choices, texts));
        break;
    case 1:
        buf_printf(out, "{{%s}}", names[choose(choices, sizeof names / sizeof *names)]);
        break;
    case 2:
        buf_cstr(out, "{{");
        put_call(choices, 2, out);
        buf_cstr(out, "}}");
        break;
    case 3:
        put_link(choices, depth, out);
        break;
    case 4:
        put_partial(choices, depth, out);
        break;
    default:
        if (depth > 0) {
            put_block(choices, depth, out);
        }
    }
}

static void put_body(Choices *choices, int depth, Buf *out)
{
    for (uint32_t i = choose(choices, NODES_MAX); i > 0; i--) {
        put_node(choices, depth, out);
    }
}

static json_t *variables_of(Choices *choices)
{
    static const char *const urls[] = {
        "https://a.test/x:y",
        "javascript:alert(1)",
        "java",
        "script:x",
        " \tJAVASCRIPT:x",
        ":",
        "data:text/html,x",
        "/a:b",
        "java\nscript",
        "vb&script:x",
        "mailto:a@b",
    };
    static const char *const numbers[] = {
        "1e99999999", "12.50", "-0", "1e30", "999999999999999999999"};
    json_t *all = json_pack(
        "{s:[i,f,s,n,b],s:i,s:{s:[[]],s:s}}", "a", 1, 2.5, "<x>", 1, "n", (int)choose(choices, 200),
        "o", "k", "z", CHOOSE_TEXT(choices, numbers).ptr);
    (void)json_object_set_new(
        all, "l", json_pack("[{s:s},s,[]]", "s", CHOOSE_TEXT(choices, urls).ptr, "x"));
    (void)json_object_set_new(all, "s", json_string(CHOOSE_TEXT(choices, urls).ptr));
    (void)json_object_set_new(all, "u", json_string(CHOOSE_TEXT(choices, urls).ptr));
    (void)json_object_set_new(all, "big", json_string(CHOOSE_TEXT(choices, numbers).ptr));
    return all;
}

// As a browser reads it: what it strips is passed over.
static bool runs(const char *url)
{
    static const char *const schemes[] = {"javascript:", "vbscript:", "data:"};
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        const char *wanted = schemes[i];
        for (const char *c = url; *c != '\0' && *c != '"' && *wanted != '\0'; c++) {
            if ((unsigned char)*c <= ' ') {
                continue;
            }
            char low = *c >= 'A' && *c <= 'Z' ? (char)(*c + 32) : *c;
            if (low != *wanted) {
                break;
            }
            wanted++;
        }
        if (*wanted == '\0') {
            return true;
        }
    }
    return false;
}

static void check_links(Buf *html)
{
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        for (const char *at = buf_c(html); (at = strstr(at, links[i].open)) != NULL;) {
            at += strlen(links[i].open);
            assert(!runs(at));
        }
    }
}

static int64_t no_time_us(void)
{
    static int64_t now_us;
    return ++now_us;
}

static void render(const Template *tpl, const json_t *variables, Buf *out, Buf *again)
{
    static TemplateTools *tools = NULL;
    tools = tools != NULL ? tools : template_tools_new();
    TemplateMeter meter = {.cpu_us = no_time_us, .max_us = CPU_MAX_US};
    TemplateContext context = {.locale = STR("fa-AF"), .tools = tools, .meter = &meter};
    Error err = {0};
    bool ok = template_render_in(tpl, &context, variables, out, &err);
    assert(ok || err.kind == ERROR_PERMANENT);
    assert(!meter.over || !ok);
    if (ok) {
        meter = (TemplateMeter){0};
        assert(template_render_in(tpl, &context, variables, again, &err));
        assert(str_eq(buf_view(out), buf_view(again)));
        check_links(out);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Choices choices = {data, data + size};
    Buf source;
    Buf partial;
    Buf out;
    Buf again;
    buf_init(&source, SOURCE_MAX);
    buf_init(&partial, SOURCE_MAX);
    buf_init(&out, 2 * TEMPLATE_OUTPUT_MAX);
    buf_init(&again, 2 * TEMPLATE_OUTPUT_MAX);
    json_t *variables = variables_of(&choices);
    put_body(&choices, DEPTH_MAX, &source);
    put_body(&choices, 2, &partial);
    TemplateSet *set = template_set_new();
    Error err = {0};
    template_set_allow_missing(set);
    bool ok = !source.full && !partial.full &&
              template_set_add(set, STR("p"), buf_view(&partial), TEMPLATE_ESCAPE_HTML, &err);
    Template *tpl =
        ok ? template_compile(buf_view(&source), TEMPLATE_ESCAPE_HTML, set, &err) : NULL;
    if (tpl == NULL && !source.full && !partial.full) {
        (void)fprintf(stderr, "%s\n%s\n---\n%s\n", err.text, buf_c(&source), buf_c(&partial));
        assert(false && "the grammar makes what compiles");
    }
    if (tpl != NULL) {
        render(tpl, variables, &out, &again);
    }
    template_free(tpl);
    template_set_free(set);
    json_decref(variables);
    buf_done(&source);
    buf_done(&partial);
    buf_done(&out);
    buf_done(&again);
    return 0;
}
