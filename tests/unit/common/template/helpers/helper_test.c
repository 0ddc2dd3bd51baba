// SPDX-License-Identifier: Apache-2.0
// Helpers, row by row: source, variables, locale, zone, what comes out or which error.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "common/template/helpers/format.h"
#include "common/template/template.h"

typedef struct Row {
    const char *source;
    const char *json;
    const char *expected;
    const char *locale; // NULL: none
    const char *zone;
    bool strict;
} Row;

static TemplateTools *tools;

static bool render_row(const Row *row, Buf *out, Error *err)
{
    json_t *variables = json_loads(row->json, JSON_DECODE_ANY, NULL);
    assert_non_null(variables);
    Template *tpl = template_compile(str_from(row->source), TEMPLATE_ESCAPE_HTML, NULL, err);
    TemplateContext context = {
        .locale = str_from(row->locale),
        .zone = str_from(row->zone),
        .strict = row->strict,
        .tools = tools,
    };
    bool ok = tpl != NULL && template_render_in(tpl, &context, variables, out, err);
    template_free(tpl);
    json_decref(variables);
    return ok;
}

static void check_row(const Row *row)
{
    Error err = {0};
    Buf out;
    buf_init(&out, TEMPLATE_OUTPUT_MAX);
    if (!render_row(row, &out, &err)) {
        fail_msg("%s: %s", row->source, err.text);
    }
    if (!str_eq(buf_view(&out), str_from(row->expected))) {
        fail_msg(
            "source:   %s\nexpected: [%s]\ngot:      [%s]", row->source, row->expected,
            buf_c(&out));
    }
    buf_done(&out);
}

static void check_error(const Row *row)
{
    Error err = {0};
    Buf out;
    buf_init(&out, TEMPLATE_OUTPUT_MAX);
    if (render_row(row, &out, &err)) {
        fail_msg("%s gives [%s]", row->source, buf_c(&out));
    }
    assert_int_equal(err.kind, ERROR_PERMANENT);
    if (strstr(err.text, row->expected) == NULL) {
        fail_msg("%s: expected '%s' in '%s'", row->source, row->expected, err.text);
    }
    buf_done(&out);
}

#define CHECK(rows)                                                                                \
    for (size_t i = 0; i < sizeof(rows) / sizeof *(rows); i++) {                                   \
        check_row(&(rows)[i]);                                                                     \
    }

// clang-format off
static void conditions_compare(void **state)
{
    (void)state;
    static const Row rows[] = {
        {"{{#if (eq a b)}}y{{else}}n{{/if}}", "{\"a\":1,\"b\":1}", "y", NULL, NULL, false},
        {"{{#if (eq a b)}}y{{else}}n{{/if}}", "{\"a\":1,\"b\":1.0}", "y", NULL, NULL, false},
        {"{{#if (eq a b)}}y{{else}}n{{/if}}", "{\"a\":1,\"b\":\"1\"}", "n", NULL, NULL, false},
        {"{{#if (eq a \"x\")}}y{{else}}n{{/if}}", "{\"a\":\"x\"}", "y", NULL, NULL, false},
        {"{{#if (eq a null)}}y{{/if}}{{#if (eq b null)}}y{{/if}}", "{\"a\":null}", "yy", NULL, NULL, false},
        {"{{#if (ne a b)}}y{{else}}n{{/if}}", "{\"a\":1,\"b\":2}", "y", NULL, NULL, false},
        {"{{lt 1 2}} {{lt 2 1}} {{lt 2 2}} {{lte 2 2}}", "{}", "true false false true", NULL, NULL, false},
        {"{{gt 1.5 1}} {{gt \"b\" \"a\"}} {{gt \"10\" 9}} {{gte 1 1}}", "{}", "true true true true", NULL, NULL, false},
        {"{{lt a 1}}{{gt a 1}}", "{\"a\":[]}", "falsefalse", NULL, NULL, false},
        {"{{lt \"2026-01-02\" \"2026-01-10\"}}", "{}", "true", NULL, NULL, false},
        {"{{#if (and a (not b))}}y{{/if}}", "{\"a\":1,\"b\":0}", "y", NULL, NULL, false},
        {"{{#if (or a b c)}}y{{else}}n{{/if}}", "{\"c\":\"x\"}", "y", NULL, NULL, false},
        {"{{or a b}}", "{\"b\":\"x\"}", "x", NULL, NULL, false},
        {"{{#unless (eq a 1)}}y{{else}}n{{/unless}}", "{\"a\":1}", "n", NULL, NULL, false},
        {"{{#eq a 1}}y{{else}}n{{/eq}}", "{\"a\":1}", "y", NULL, NULL, false},
        {"{{#if a}}1{{else if (gt b 2)}}2{{else}}3{{/if}}", "{\"b\":3}", "2", NULL, NULL, false},
        {"{{#each l}}{{#if (eq @index 1)}}{{.}}{{/if}}{{/each}}", "{\"l\":[1,2,3]}", "2", NULL, NULL, false},
    };
    CHECK(rows);
}

static void a_name_without_arguments_is_a_variable(void **state)
{
    (void)state;
    static const Row rows[] = {
        {"{{date}} {{url}} {{#number}}{{.}}{{/number}}", "{\"date\":\"d\",\"url\":\"u\",\"number\":7}", "d u 7", NULL, NULL, false},
    };
    CHECK(rows);
}

static void lookup_and_block_parameters(void **state)
{
    (void)state;
    static const Row rows[] = {
        {"{{#each people}}{{.}} in {{lookup ../cities @index}};{{/each}}", "{\"people\":[\"A\",\"B\"],\"cities\":[\"X\",\"Y\"]}", "A in X;B in Y;", NULL, NULL, false},
        {"{{#each people}}{{name}}: {{#with (lookup ../cities [home-town])~}} {{name}} ({{land}}) {{~/with}};{{/each}}",
         "{\"people\":[{\"name\":\"N\",\"home-town\":\"d\"}],\"cities\":{\"d\":{\"name\":\"D\",\"land\":\"L\"}}}", "N: D (L);", NULL, NULL, false},
        {"{{lookup (lookup a \"b\") 1}}", "{\"a\":{\"b\":[5,6]}}", "6", NULL, NULL, false},
        {"{{lookup a b}}", "{\"a\":{}}", "", NULL, NULL, false},
        {"{{lookup a 0}}{{lookup a \"1\"}}|{{lookup a 2}}|{{lookup a \"length\"}}", "{\"a\":\"Zo\"}", "Zo||2", NULL, NULL, false},
        {"{{lookup f \"k\"}}|{{lookup z \"k\"}}|{{lookup t \"k\"}}|{{lookup n \"k\"}}|{{lookup l \"k\"}}|{{lookup f b}}|{{lookup y \"k\"}}",
         "{\"f\":false,\"z\":0,\"t\":\"\",\"n\":null,\"l\":[],\"y\":true}", "false|0||||false|", NULL, NULL, false},
        {"{{#each l as |x i|}}{{i}}:{{x.n}}{{#each x.m as |y|}}({{i}}{{y}}{{x.n}}){{/each}} {{/each}}", "{\"l\":[{\"n\":\"a\",\"m\":[1,2]},{\"n\":\"b\",\"m\":[]}]}", "0:a(01a)(02a) 1:b ", NULL, NULL, false},
        {"{{#each o as |v k|}}{{k}}={{v}};{{/each}}", "{\"o\":{\"a\":1,\"b\":2}}", "a=1;b=2;", NULL, NULL, false},
        {"{{#with city as |c|}}{{#with c.spot as |s|}}{{c.name}}: {{s.n}}{{/with}}{{/with}}", "{\"city\":{\"name\":\"SF\",\"spot\":{\"n\":1}}}", "SF: 1", NULL, NULL, false},
        {"{{#each l as |x|}}{{x}}{{this.x}}{{/each}}{{x}}", "{\"l\":[{\"x\":\"own\"}],\"x\":\"out\"}", "[object Object]ownout", NULL, NULL, false},
        {"{{#each l as |x|}}{{#if x.on}}{{#with x.w}}{{x.n}}{{/with}}{{else}}-{{/if}}{{else}}none{{/each}}", "{\"l\":[{\"on\":1,\"n\":2,\"w\":{}},{}]}", "2-", NULL, NULL, false},
        {"{{log \"x\" level=\"debug\"}}", "{}", "", NULL, NULL, false},
    };
    CHECK(rows);
}

static void texts(void **state)
{
    (void)state;
    static const Row rows[] = {
        {"{{upper a}} {{lower a}}", "{\"a\":\"H\xc3\xa9llo <b>\"}", "H\xc3\x89LLO &lt;B&gt; h\xc3\xa9llo &lt;b&gt;", NULL, NULL, false},
        {"{{upper a}}", "{\"a\":\"i\"}", "\xc4\xb0", "tr-TR", NULL, false},
        {"{{upper a}}", "{\"a\":\"stra\xc3\x9f" "e\"}", "STRASSE", "de", NULL, false},
        {"{{upper 5}}{{upper a}}", "{}", "5", NULL, NULL, false},
        {"{{default a \"x\"}}{{default b \"y\"}}{{default c \"z\"}}{{default d 1}}", "{\"a\":\"\",\"c\":0,\"d\":false}", "xy0false", NULL, NULL, false},
        {"{{default a b \"x\"}}", "{\"b\":\"B\"}", "B", NULL, NULL, false},
        {"?q={{url a}}", "{\"a\":\"a b&c=d/\xc3\xa9'\\\"\"}", "?q=a%20b%26c%3Dd%2F%C3%A9%27%22", NULL, NULL, false},
        {"{{url a}}", "{\"a\":\"x\\r\\nBcc: y\"}", "x%0D%0ABcc%3A%20y", NULL, NULL, false},
        {"{{truncate a 5}}|{{truncate a 20}}|{{truncate a 8 \"...\"}}", "{\"a\":\"Hello world\"}", "Hell\xe2\x80\xa6|Hello world|Hello...", NULL, NULL, false},
        {"{{truncate a 2}}", "{\"a\":\"e\xcc\x81" "e\xcc\x81" "e\xcc\x81\"}", "e\xcc\x81\xe2\x80\xa6", NULL, NULL, false},
        {"{{truncate a 2}}", "{\"a\":\"\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7xyz\"}", "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7\xe2\x80\xa6", NULL, NULL, false},
        {"{{upper (truncate (default a \"nothing\") 4)}}", "{}", "NOT\xe2\x80\xa6", NULL, NULL, false},
    };
    CHECK(rows);
}

static void numbers_and_currencies(void **state)
{
    (void)state;
    static const Row rows[] = {
        {"{{number n}}", "{\"n\":1234567.891}", "1,234,567.891", "en-US", NULL, false},
        {"{{number n}}", "{\"n\":1234567.891}", "1.234.567,891", "de-DE", NULL, false},
        {"{{number n}}", "{\"n\":1234.5}", "\xdb\xb1\xd9\xac\xdb\xb2\xdb\xb3\xdb\xb4\xd9\xab\xdb\xb5", "fa-AF", NULL, false},
        {"{{number n digits=2}} {{number n \"integer\"}} {{number n \"0.000\"}}", "{\"n\":\"1234.5\"}", "1,234.50 1,234 1234.500", "en", NULL, false},
        {"{{number 0.256 \"percent\"}} {{number 0.256 \"percent\" digits=1}} {{number 12345 \"compact\"}}", "{}", "26% 25.6% 12K", "en", NULL, false},
        {"{{number 9007199254740993}}", "{}", "9,007,199,254,740,993", "en", NULL, false},
        {"{{number n}}{{currency n \"EUR\"}}{{date n}}", "{}", "", "en", NULL, false},
        {"{{currency 1234.5 \"USD\"}} {{currency 1234.5 \"EUR\"}} {{currency 1234.5 \"JPY\"}}", "{}", "$1,234.50 \xe2\x82\xac" "1,234.50 \xc2\xa5" "1,234", "en-US", NULL, false},
        {"{{currency 1234.5 \"EUR\"}}", "{}", "1.234,50\xc2\xa0\xe2\x82\xac", "de-DE", NULL, false},
        {"{{currency 1999 \"EUR\" minor=true}} {{currency 1999 \"JPY\" minor=true}} {{currency -1999 \"KWD\" minor=true}}", "{}", "\xe2\x82\xac" "19.99 \xc2\xa5" "1,999 -KWD\xc2\xa0" "1.999", "en-US", NULL, false},
        {"{{currency a.sum a.code locale=\"fr-FR\"}}", "{\"a\":{\"sum\":\"12.3\",\"code\":\"EUR\"}}", "12,30\xc2\xa0\xe2\x82\xac", "en-US", NULL, false},
    };
    CHECK(rows);
}

static void plurals(void **state)
{
    (void)state;
    static const char polish[] = "{{#each l}}{{plural this one=\"# plik\" few=\"# pliki\" many=\"# plik\xc3\xb3w\" other=\"# pliku\"}} {{/each}}";
    static const Row rows[] = {
        {"{{plural n \"item\" \"items\"}} {{plural m \"item\" \"items\"}}", "{\"n\":1,\"m\":2}", "item items", "en", NULL, false},
        {"{{plural n one=\"# item\" other=\"# items\"}}", "{\"n\":1200}", "1,200 items", "en", NULL, false},
        {"{{plural n zero=\"nothing\" one=\"# item\" other=\"# items\"}}", "{\"n\":0}", "nothing", "en", NULL, false},
        {polish, "{\"l\":[1,2,5,22]}", "1 plik 2 pliki 5 plik\xc3\xb3w 22 pliki ", "pl", NULL, false},
        {"{{#each l}}{{plural this one=\"#st\" two=\"#nd\" few=\"#rd\" other=\"#th\" ordinal=true}} {{/each}}", "{\"l\":[1,2,3,4,11,21]}", "1st 2nd 3rd 4th 11th 21st ", "en", NULL, false},
    };
    CHECK(rows);
}

static void dates(void **state)
{
    (void)state;
    static const char when[] = "{\"t\":\"2026-11-21T23:30:00Z\",\"d\":\"2026-11-21\",\"s\":1795303800,\"ms\":1795303800000}";
    static const Row rows[] = {
        {"{{date t}} {{date d}} {{date s}} {{date ms}}", when, "Nov 21, 2026 Nov 21, 2026 Nov 21, 2026 Nov 21, 2026", "en-US", NULL, false},
        {"{{date t \"full\"}}", when, "Sunday, November 22, 2026", "en-US", "Europe/Berlin", false},
        {"{{date t \"long\"}}", when, "22. November 2026", "de-DE", "Europe/Berlin", false},
        {"{{date d \"long\"}}", when, "21. November 2026", "de-DE", "Pacific/Kiritimati", false},
        {"{{date t \"short\" time=\"short\"}}", when, "22.11.26, 00:30", "de-DE", "Europe/Berlin", false},
        {"{{date t \"time\"}} {{date t \"datetime\"}}", when, "00:30 22.11.2026, 00:30", "de-DE", "Europe/Berlin", false},
        {"{{date t \"yyyy-MM-dd HH:mm\" zone=\"America/New_York\"}}", when, "2026-11-21 18:30", "en", "Europe/Berlin", false},
        {"{{date t \"iso\"}}", when, "2026-11-22T00:30:00+01:00", "fa-AF", "Europe/Berlin", false},
        {"{{date t \"skeleton:yMMMMd\"}}", when, "21 novembre 2026", "fr-FR", NULL, false},
        {"{{date d \"long\"}}", when, "\xdb\xb3\xdb\xb0 \xd8\xb9\xd9\x82\xd8\xb1\xd8\xa8 \xdb\xb1\xdb\xb4\xdb\xb0\xdb\xb5", "fa-AF", NULL, false},
        {"{{date \"2026-03-29T00:59:00Z\" \"time\"}} {{date \"2026-03-29T01:01:00Z\" \"time\"}}", "{}", "01:59 03:01", "de", "Europe/Berlin", false},
    };
    CHECK(rows);
}

static void a_helpers_refusal_names_the_place(void **state)
{
    (void)state;
    static const Row rows[] = {
        {"a\n {{number n}}", "{\"n\":\"secret\"}", "line 2, column 2: 'number': expected a number, got a text", NULL, NULL, false},
        {"{{number n \"nonsense\"}}", "{\"n\":1}", "line 1, column 1: 'number': the number style cannot be used", NULL, NULL, false},
        {"{{number n digits=99}}", "{\"n\":1}", "digits= is a whole number from 0 to 20", NULL, NULL, false},
        {"{{currency n \"Euro\"}}", "{\"n\":1}", "line 1, column 1: 'currency': the currency is none: expected three capitals", NULL, NULL, false},
        {"{{currency n}}", "{\"n\":1}", "the currency is missing", NULL, NULL, false},
        {"{{currency n \"EUR\" minor=true}}", "{\"n\":1.5}", "whole number of coins", NULL, NULL, false},
        {"{{date d}}", "{\"d\":\"tomorrow\"}", "expected a time: RFC 3339", NULL, NULL, false},
        {"{{date d}}", "{\"d\":0}", "line 1, column 1: 'date': the time zone does not exist", NULL, "Mars/Olympus", false},
        {"{{date d zone=\"Nowhere\"}}", "{\"d\":0}", "the time zone does not exist", NULL, NULL, false},
        {"{{date d time=\"noon\"}}", "{\"d\":0}", "time= is short, medium, long or full", NULL, NULL, false},
        {"{{plural n one=\"x\"}}", "{\"n\":2}", "other= is missing", "en", NULL, false},
        {"{{plural n \"x\"}}", "{\"n\":2}", "expected {{plural n 'item' 'items'}}", "en", NULL, false},
        {"{{truncate a 0}}", "{}", "the length is a whole number", NULL, NULL, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        check_error(&rows[i]);
    }
}

static bool no_asset(void *ctx, Str name, Buf *out, Error *err)
{
    (void)ctx;
    (void)out;
    return error_set(err, ERROR_PERMANENT, "there is no asset '" STR_FMT "'", STR_ARG(name));
}

// A refusal's text reaches STATUS, history, dead letters and logs; the variables do not.
static void a_helpers_refusal_holds_no_value_of_the_variables(void **state)
{
    (void)state;
    static const char *const refused[] = {
        "{{currency 1 v}}", "{{currency v \"EUR\"}}", "{{currency 1 \"EUR\" digits=v}}", "{{currency v \"EUR\" minor=true}}",
        "{{number 1 v}}", "{{number v}}", "{{number 1 digits=v}}",
        "{{date 0 zone=v}}", "{{date 0 time=v}}", "{{date v}}", "{{date 0 w}}", "{{date 0 s}}", "{{date 0 locale=w}}",
        "{{plural v \"a\" \"b\"}}", "{{plural 1 two=v}}", "{{truncate \"a\" v}}", "{{upper \"a\" locale=w}}",
        "{{asset v}}", "{{asset (lower v)}}", "{{> (lookup . \"v\")}}",
    };
    static const char json[] = "{\"v\": \"Mallory/mallory@example.com\", \"s\": \"skeleton:\", \"w\": \"%s\"}";
    char long_text[400], variables[600];
    memset(long_text, 'm', sizeof long_text - 1);
    memcpy(long_text, "mallory", 7);
    long_text[sizeof long_text - 1] = '\0';
    (void)snprintf(variables, sizeof variables, json, long_text);
    TemplateAssets assets = {.find = no_asset};
    json_t *given = json_loads(variables, 0, NULL);
    assert_non_null(given);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        Error err = {0};
        Buf out;
        buf_init(&out, TEMPLATE_OUTPUT_MAX);
        Template *tpl = template_compile(str_from(refused[i]), TEMPLATE_ESCAPE_HTML, NULL, &err);
        TemplateContext context = {.tools = tools, .assets = &assets};
        if (tpl == NULL || template_render_in(tpl, &context, given, &out, &err)) {
            fail_msg("%s: not refused (%s)", refused[i], err.text);
        }
        if (str_contains_nocase(str_from(err.text), STR("mallory")) || str_contains(str_from(err.text), STR("mmm"))) {
            fail_msg("%s: %s", refused[i], err.text);
        }
        assert_non_null(strstr(err.text, "line 1, column 1: "));
        template_free(tpl);
        buf_done(&out);
    }
    json_decref(given);
    // What the template's author wrote is named.
    Error err = {0};
    Template *tpl = template_compile(STR("{{asset \"logo.png\"}}"), TEMPLATE_ESCAPE_HTML, NULL, &err);
    TemplateContext context = {.tools = tools, .assets = &assets};
    Buf out;
    buf_init(&out, TEMPLATE_OUTPUT_MAX);
    assert_false(template_render_in(tpl, &context, NULL, &out, &err));
    assert_non_null(strstr(err.text, "there is no asset 'logo.png'"));
    template_free(tpl);
    buf_done(&out);
}

static void strict_mode_names_what_is_missing(void **state)
{
    (void)state;
    static const Row fine[] = {
        {"{{a}}{{#if b}}x{{/if}}{{#unless b.c}}y{{/unless}}{{#b}}x{{/b}}{{^b}}z{{/b}}", "{\"a\":null}", "yz", NULL, NULL, true},
        {"{{default b.c \"d\"}}{{#if (eq b 1)}}x{{/if}}{{#if (or b a)}}x{{/if}}", "{\"a\":0}", "d", NULL, NULL, true},
        {"{{upper (default b \"d\")}}", "{}", "D", NULL, NULL, true},
        {"{{#s}}{{a}}{{/s}}", "{\"a\":1,\"s\":{}}", "1", NULL, NULL, true},
    };
    static const Row errors[] = {
        {"x {{a.b}}", "{\"a\":{}}", "line 1, column 3: variable 'a.b' is missing", NULL, NULL, true},
        {"{{#each l}}{{this.n}}{{/each}}", "{\"l\":[{}]}", "variable 'this.n' is missing", NULL, NULL, true},
        {"{{#each l}}{{/each}}", "{}", "variable 'l' is missing", NULL, NULL, true},
        {"{{upper n}}", "{}", "variable 'n' is missing", NULL, NULL, true},
        {"{{date t zone=z}}", "{\"t\":0}", "variable 'z' is missing", NULL, NULL, true},
    };
    CHECK(fine);
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        check_error(&errors[i]);
    }
}
// clang-format on

// Doubling a text again and again, or formatting without an end, is bounded.
static void helpers_are_bounded(void **state)
{
    (void)state;
    Buf big;
    buf_init(&big, 600 * 1024);
    buf_cstr(&big, "{\"l\":[");
    for (int i = 0; i < 500; i++) {
        buf_cstr(&big, i > 0 ? ",1" : "1");
    }
    buf_cstr(&big, "],\"t\":\"");
    for (int i = 0; i < 40000; i++) {
        buf_char(&big, 'a');
    }
    buf_cstr(&big, "\"}");
    check_error(&(Row){
        "{{#each l}}{{#if (eq (upper ../t) 1)}}{{/if}}{{/each}}", buf_c(&big),
        "helpers made more than 2097152 bytes of text", NULL, NULL, false});
    buf_done(&big);
}

static void formatters_are_kept_and_not_without_end(void **state)
{
    (void)state;
    Formats *formats = formats_new();
    Buf out;
    Error err = {0};
    buf_init(&out, 100000);
    for (int round = 0; round < 2; round++) {
        NumberFormat number = {STR("de"), STR_EMPTY, STR_EMPTY, -1};
        assert_true(format_number(formats, &number, STR("1"), &out, &err));
    }
    assert_int_equal(formats_count(formats), 1);
    for (int i = 0; i < 2 * FORMATS_MAX; i++) {
        char locale[32];
        NumberFormat number = {STR_EMPTY, STR_EMPTY, STR_EMPTY, -1};
        number.locale = str_of(locale, (size_t)snprintf(locale, sizeof locale, "de-x-a%d", i));
        assert_true(format_number(formats, &number, STR("1"), &out, &err));
    }
    assert_true(formats_count(formats) <= FORMATS_MAX);
    buf_done(&out);
    formats_free(formats);
}

static void a_locale_that_is_none_is_the_root(void **state)
{
    (void)state;
    check_row(&(Row){"{{number 1234.5}}", "{}", "1,234.5", "%%%", NULL, false});
}

static bool find_asset(void *ctx, Str name, Buf *out, Error *err)
{
    const char *url = ctx;
    return str_eq(name, STR("logo.png"))
               ? buf_cstr(out, url)
               : error_set(err, ERROR_PERMANENT, "there is no '" STR_FMT "'", STR_ARG(name));
}

// What comes out, or the error's text.
static const char *with_asset(
    const char *source, const TemplateAssets *assets, Buf *out, Error *err)
{
    json_t *variables = json_pack("{s:s}", "name", "logo.png");
    Template *tpl = template_compile(str_from(source), TEMPLATE_ESCAPE_HTML, NULL, err);
    TemplateContext context = {.tools = tools, .assets = assets};
    buf_clear(out);
    bool ok = tpl != NULL && template_render_in(tpl, &context, variables, out, err);
    template_free(tpl);
    json_decref(variables);
    return ok ? buf_c(out) : err->text;
}

static void an_asset_is_where_the_context_says(void **state)
{
    (void)state;
    static char url[] = "https://x.test/v1/assets/a&b.png";
    const TemplateAssets assets = {.find = find_asset, .ctx = url};
    Error err = {0};
    Buf out;
    buf_init(&out, TEMPLATE_OUTPUT_MAX);
    // clang-format off
    assert_string_equal(with_asset("<img src=\"{{asset \"logo.png\"}}\">", &assets, &out, &err),
        "<img src=\"https://x.test/v1/assets/a&amp;b.png\">");
    assert_string_equal(with_asset("{{{asset name}}}", &assets, &out, &err), url);
    assert_string_equal(with_asset("{{#if (eq (asset name) 1)}}y{{else}}n{{/if}}", &assets, &out, &err), "n");
    assert_string_equal(with_asset("a\n{{asset 'x'}}", &assets, &out, &err), "line 2, column 1: 'asset': there is no 'x'");
    assert_int_equal(err.kind, ERROR_PERMANENT);
    assert_string_equal(with_asset("{{asset missing}}", &assets, &out, &err),
        "line 1, column 1: 'asset': the asset that the argument names is not there, or assets have no address");
    assert_string_equal(with_asset("{{asset name}}", NULL, &out, &err), "line 1, column 1: 'asset': there are no assets here");
    assert_string_equal(with_asset("{{asset}}", &assets, &out, &err), ""); // a variable of that name
    // clang-format on
    static char script[] = "javascript:x()";
    const TemplateAssets evil = {.find = find_asset, .ctx = script};
    assert_string_equal(
        with_asset("<a href=\"{{asset name}}\">", &evil, &out, &err),
        "<a href=\"" TEMPLATE_UNSAFE_URL "\">");
    buf_done(&out);
}

static int open_tools(void **state)
{
    (void)state;
    tools = template_tools_new();
    return 0;
}

static int close_tools(void **state)
{
    (void)state;
    template_tools_free(tools);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conditions_compare),
        cmocka_unit_test(a_name_without_arguments_is_a_variable),
        cmocka_unit_test(lookup_and_block_parameters),
        cmocka_unit_test(texts),
        cmocka_unit_test(numbers_and_currencies),
        cmocka_unit_test(plurals),
        cmocka_unit_test(dates),
        cmocka_unit_test(a_helpers_refusal_names_the_place),
        cmocka_unit_test(a_helpers_refusal_holds_no_value_of_the_variables),
        cmocka_unit_test(strict_mode_names_what_is_missing),
        cmocka_unit_test(helpers_are_bounded),
        cmocka_unit_test(formatters_are_kept_and_not_without_end),
        cmocka_unit_test(a_locale_that_is_none_is_the_root),
        cmocka_unit_test(an_asset_is_where_the_context_says),
    };
    return cmocka_run_group_tests(tests, open_tools, close_tools);
}
