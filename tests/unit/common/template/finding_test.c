// SPDX-License-Identifier: Apache-2.0
// Findings of the security review: what a text of a caller may cost (3, 4), and which URLs it may
// make (16). Steps are what bounds a render, so nothing here measures time.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/template/helpers/format.h"
#include "common/template/template.h"

static TemplateTools *tools;

// Renders; `meter` may be NULL.
static bool render_with(
    const char *source, json_t *variables, TemplateMeter *meter, Buf *out, Error *err)
{
    Template *tpl = template_compile(str_from(source), TEMPLATE_ESCAPE_HTML, NULL, err);
    if (tpl == NULL) {
        fail_msg("%s: %s", source, err->text);
    }
    TemplateContext context = {.tools = tools, .meter = meter};
    bool ok = template_render_in(tpl, &context, variables, out, err);
    template_free(tpl);
    return ok;
}

static void expect(const char *source, const char *json, const char *expected)
{
    Error err = {0};
    Buf out;
    json_t *variables = json_loads(json, 0, NULL);
    assert_non_null(variables);
    buf_init(&out, TEMPLATE_OUTPUT_MAX);
    if (!render_with(source, variables, NULL, &out, &err)) {
        fail_msg("%s: %s", source, err.text);
    }
    if (strcmp(buf_c(&out), expected) != 0) {
        fail_msg("%s with %s\nexpected: %s\ngot:      %s", source, json, expected, buf_c(&out));
    }
    buf_done(&out);
    json_decref(variables);
}

static void expect_error(const char *source, json_t *variables, const char *expected)
{
    Error err = {0};
    Buf out;
    buf_init(&out, TEMPLATE_OUTPUT_MAX);
    if (render_with(source, variables, NULL, &out, &err)) {
        fail_msg("%s gives %zu bytes", source, out.len);
    }
    assert_int_equal(err.kind, ERROR_PERMANENT);
    if (strstr(err.text, expected) == NULL) {
        fail_msg("%s: expected '%s' in '%s'", source, expected, err.text);
    }
    buf_done(&out);
    json_decref(variables);
}

// ---- 3: a number that is a gigabyte ----

static void finding_03_a_number_has_a_bounded_exponent(void **state)
{
    (void)state;
    static const char *const sources[] = {
        "{{number n}}",
        "{{number n '#,##0.00'}}",
        "{{currency n 'EUR'}}",
        "{{plural n 'item' 'items'}}",
        "{{plural n other='#' ordinal=true}}",
    };
    static const char *const numbers[] = {
        "1e99999999",
        "1e999999999",
        "1e10000000",
        "1E+31",
        "-1e-31",
        "1e-99999999",
        "1e99999999999999999999",
        "9e0000000000000000031",
    };
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
            expect_error(sources[i], json_pack("{s:s}", "n", numbers[k]), "expected a number");
        }
    }
    expect_error(
        "{{number n}}", json_pack("{s:s}", "n", "1e31"),
        "expected a number with an exponent from -30 to 30, got a text");
}

static void finding_03_what_is_a_number_stays_one(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool good;
    } rows[] = {
        {"1e3", true},   {"1E+3", true},   {"-12.50", true}, {"+1.", true},  {".5", true},
        {"1e-30", true}, {"1e030", true},  {"1e30", true},   {"1e", false},  {"e3", false},
        {"1e+", false},  {"1e+-3", false}, {"1e3.5", false}, {"1e-", false}, {"", false},
        {".", false},    {"1.2.3", false}, {"0x10", false},  {"nan", false}, {"1 2", false},
    };
    const char *why = NULL;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (format_is_decimal(str_from(rows[i].text), &why) != rows[i].good) {
            fail_msg("'%s'", rows[i].text);
        }
    }
    char digits[FORMAT_NUMBER_MAX + 1];
    memset(digits, '9', sizeof digits);
    assert_true(format_is_decimal(str_of(digits, FORMAT_NUMBER_MAX - 1), &why));
    assert_false(format_is_decimal(str_of(digits, FORMAT_NUMBER_MAX), &why));
    expect("{{number n}}", "{\"n\":\" 1e3 \"}", "1,000");
    expect("{{number n 'scientific'}}", "{\"n\":1e300}", "1E300"); // a double is bounded by itself
}

static void finding_03_a_text_that_is_no_number_compares_as_a_text(void **state)
{
    (void)state;
    expect("{{#if (lt 1 n)}}y{{else}}n{{/if}}", "{\"n\":\"1e999999999\"}", "n");
    expect("{{#if (lt 1 n)}}y{{else}}n{{/if}}", "{\"n\":\"1e3\"}", "y");
}

// ---- 4: free operations on long texts ----

// What is asked of a long text `t`, again and again; 22 times a round.
static void expect_bounded(const char *question, const char *unit, const char *expected)
{
    enum { BYTES = 44000, ROUNDS = 9000, TIMES = 22 };
    json_t *variables = json_object();
    json_t *array = json_array();
    char *text = malloc(BYTES + 1);
    assert_non_null(text);
    for (size_t i = 0; i < BYTES; i++) {
        text[i] = unit[i % strlen(unit)];
    }
    text[BYTES] = '\0';
    (void)json_object_set_new(variables, "t", json_string(text));
    text[BYTES - 1] = 'z';
    (void)json_object_set_new(variables, "q", json_string(text));
    free(text);
    for (size_t i = 0; i < ROUNDS; i++) {
        (void)json_array_append_new(array, json_integer((json_int_t)i));
    }
    (void)json_object_set_new(variables, "a", array);
    Buf source;
    buf_init(&source, TEMPLATE_SOURCE_MAX);
    buf_cstr(&source, "{{#each a}}");
    for (int i = 0; i < TIMES; i++) {
        buf_cstr(&source, question);
    }
    buf_cstr(&source, "{{/each}}");
    expect_error(buf_c(&source), variables, expected);
    buf_done(&source);
}

static void finding_04_each_byte_that_is_looked_at_counts(void **state)
{
    (void)state;
    static const char steps[] = "takes more than 1000000 steps";
    expect_bounded("{{#if ../t.length}}{{/if}}", "x", steps);
    expect_bounded("{{#if (lookup ../t 'length')}}{{/if}}", "x", steps);
    expect_bounded("{{#if ../t.[999999999]}}{{/if}}", "x", steps);
    expect_bounded("{{#if (lt 1 ../t)}}{{/if}}", "9", steps);
    expect_bounded("{{#if (gte ../t 1)}}{{/if}}", " ", steps);
    expect_bounded("{{#if (eq ../t ../q)}}{{/if}}", "x", steps);
    expect_bounded("{{#if (lt ../t ../q)}}{{/if}}", "x", steps);
    expect_bounded("{{#if (lookup .. ../t)}}{{/if}}", "x", steps);
    expect_bounded("{{#with ../t}}{{#with ../../q}}{{/with}}{{/with}}", "x", steps);
    expect_bounded("{{#if (truncate ../t 100000)}}{{/if}}", "\xcc\x81", steps);
    expect_bounded("{{#if (truncate 'aaaaaa' 5 ../t)}}{{/if}}", "x", steps);
}

// Opening a formatter takes a hundred times as long as using one.
static void finding_04_a_formatter_for_each_round_counts(void **state)
{
    (void)state;
    json_t *array = json_array();
    for (int i = 0; i < 3000; i++) {
        char pattern[32];
        (void)snprintf(pattern, sizeof pattern, "0.0'%d'", i);
        (void)json_array_append_new(array, json_string(pattern));
    }
    expect_error(
        "{{#each a}}{{number 1 this}}{{/each}}", json_pack("{s:o}", "a", array),
        "takes more than 1000000 steps");
}

static int64_t asked;

// Every time it is asked a millisecond has passed.
static int64_t fake_cpu_us(void)
{
    return 1000 * ++asked;
}

static json_t *rounds(size_t count)
{
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++) {
        (void)json_array_append_new(array, json_integer((json_int_t)i));
    }
    return json_pack("{s:o}", "a", array);
}

static void finding_04_a_render_over_its_time_is_ended(void **state)
{
    (void)state;
    static const char source[] = "{{#each a}}{{#if this}}{{/if}}{{#if this}}{{/if}}{{/each}}";
    TemplateMeter meter = {.cpu_us = fake_cpu_us, .max_us = 2500};
    Error err = {0};
    Buf out;
    json_t *variables = rounds(9000);
    buf_init(&out, TEMPLATE_OUTPUT_MAX);
    asked = 0;
    assert_false(render_with(source, variables, &meter, &out, &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
    assert_non_null(strstr(err.text, "the rendering takes more than 2 ms of CPU time"));
    assert_true(meter.over);
    assert_int_equal(asked, 4); // at 1 ms it begins, at 4 ms it is over
    // The next of the same notification has no time left.
    assert_false(template_meter_ask(&meter, &err));
    json_decref(variables);
    buf_done(&out);
}

// One operation may have many subexpressions: the limits are looked at behind each of them.
static void finding_04_subexpressions_are_bounded_one_by_one(void **state)
{
    (void)state;
    enum { BYTES = 44000, TEXTS = 8 }; // each comparison takes 171 steps; there are 64 of them
    char *text = malloc(BYTES);
    assert_non_null(text);
    memset(text, 'x', BYTES);
    json_t *variables = json_pack("{s:s#, s:s#}", "t", text, BYTES, "q", text, BYTES);
    free(text);
    Buf source;
    buf_init(&source, TEMPLATE_SOURCE_MAX);
    buf_cstr(&source, "{{#if (and");
    for (int i = 0; i < TEXTS; i++) {
        buf_cstr(&source, " (and");
        for (int k = 0; k < TEXTS; k++) {
            buf_cstr(&source, " (eq t q)");
        }
        buf_cstr(&source, ")");
    }
    buf_cstr(&source, ")}}y{{/if}}");
    TemplateMeter meter = {.cpu_us = fake_cpu_us, .max_us = 1000000};
    Error err = {0};
    Buf out;
    buf_init(&out, TEMPLATE_OUTPUT_MAX);
    asked = 0;
    assert_true(render_with(buf_c(&source), variables, &meter, &out, &err));
    assert_string_equal(buf_c(&out), "y");
    assert_int_equal(asked, 2); // of 10,900 steps in one operation, every 4,096
    json_decref(variables);
    buf_done(&source);
    buf_done(&out);
}

static void finding_04_a_small_render_asks_for_no_time(void **state)
{
    (void)state;
    TemplateMeter meter = {.cpu_us = fake_cpu_us, .max_us = 1};
    Error err = {0};
    Buf out;
    json_t *variables = rounds(100);
    buf_init(&out, TEMPLATE_OUTPUT_MAX);
    asked = 0;
    assert_true(render_with("{{#each a}}{{this}}{{/each}}", variables, &meter, &out, &err));
    assert_int_equal(asked, 0);
    assert_false(meter.over);
    json_decref(variables);
    buf_done(&out);
}

// 128 partials that define and call inline partials of each other took seconds to compile.
static void finding_04_a_call_is_looked_up_once(void **state)
{
    (void)state;
    Error err = {0};
    TemplateSet *set = template_set_new();
    assert_true(
        template_set_add(set, STR("a"), STR("{{>late}}{{>b}}"), TEMPLATE_ESCAPE_HTML, &err));
    assert_true(template_set_add(
        set, STR("b"), STR("{{#*inline \"late\"}}L{{/inline}}{{>a2}}"), TEMPLATE_ESCAPE_HTML,
        &err));
    // What only the template defines is asked of each template again.
    Template *without = template_compile(STR("{{>a}}"), TEMPLATE_ESCAPE_HTML, set, &err);
    assert_null(without);
    assert_non_null(strstr(err.text, "partial 'b': line 1, column "));
    assert_non_null(strstr(err.text, "unknown partial 'a2'"));
    Template *with = template_compile(
        STR("{{#*inline \"a2\"}}A{{/inline}}{{>a}}"), TEMPLATE_ESCAPE_HTML, set, &err);
    assert_non_null(with);
    template_free(with);
    // And of the set, once it has grown.
    assert_true(template_set_add(set, STR("a2"), STR("2"), TEMPLATE_ESCAPE_HTML, &err));
    without = template_compile(STR("{{>a}}"), TEMPLATE_ESCAPE_HTML, set, &err);
    assert_non_null(without);
    template_free(without);
    template_set_free(set);
}

// ---- 16: URLs ----

// `u` in a place: what stands before it and behind it.
typedef struct Place {
    const char *before;
    const char *after;
} Place;

static void expect_refused(const Place *place, const char *json)
{
    char source[200];
    char expected[200];
    (void)snprintf(source, sizeof source, "%s{{u}}%s", place->before, place->after);
    (void)snprintf(
        expected, sizeof expected, "%s" TEMPLATE_UNSAFE_URL "%s", place->before, place->after);
    expect(source, json, expected);
}

static void finding_16_a_value_makes_no_url_that_runs(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "javascript:alert(1)",      "JaVaScRiPt:alert(1)", " javascript:x",
        "\\tjavascript:x",          "\\u0001javascript:x", "java\\nscript:x",
        "java\\u00adscript:x",      "javascript :x",       "vbscript:x",
        "data:text/html,<b>",       "data:image/png;x",    "blob:x",
        "javascript://%0aalert(1)", "view-source:x",       "averyveryverylongscheme:x",
    };
    static const Place places[] = {
        {"<a href=\"", "\">"},
        {"<a href='", "'>"},
        {"<a href=", ">"},
        {"<a\n HREF = \"", "\">"},
        {"<img src=\"", "\">"},
        {"<form action=\"", "\">"},
        {"<button formaction='", "'>"},
        {"<body background='", "'>"},
        {"<video poster='", "'>"},
        {"<img srcset=\"/a.png 1x,", "\">"},
        {"<use xlink:href=\"", "\">"},
        {"<link imagesrcset=\"/a.png 1x, ", "\">"},
        {"<object codebase=\"", "\">"},
        {"<object data=\"", "\">"},
        {"<a ping=\"", "\">"},
        {"<param name=src value=\"", "\">"},
        {"<svg><set attributeName=href to=\"", "\">"},
        {"<!--[if mso]><a href=\"", "\">"},
        {"<p title='a > b \"' class=x href=\"", "\">"},
        {"<svg/onload=x href=\"", "\">"},
        {"<style>a{b:c}</style><a href=\"  ", "\">"},
        {"<script>if (a<b) c='</script><a href=\"", "\">"},
        {"<!-- ' -->a < b<a href=\"", "\">"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char json[128];
        (void)snprintf(json, sizeof json, "{\"u\":\"%s\"}", bad[i]);
        for (size_t k = 0; k < sizeof places / sizeof *places; k++) {
            expect_refused(&places[k], json);
        }
        expect("<a href=\"{{#if u}}{{u}}{{/if}}\">", json, "<a href=\"" TEMPLATE_UNSAFE_URL "\">");
        expect("<a href=\"{{{u}}}\">", json, "<a href=\"" TEMPLATE_UNSAFE_URL "\">");
    }
}

static void finding_16_a_url_in_pieces_is_one_url(void **state)
{
    (void)state;
    expect(
        "<a href=\"{{a}}{{b}}\">", "{\"a\":\"java\",\"b\":\"script:x\"}",
        "<a href=\"java" TEMPLATE_UNSAFE_URL "\">");
    expect(
        "<a href=\"{{a}}{{b}}\">", "{\"a\":\"javascript\",\"b\":\":x\"}",
        "<a href=\"javascript" TEMPLATE_UNSAFE_URL "\">");
    expect(
        "<a href=\"java{{b}}\">", "{\"b\":\"script:x\"}",
        "<a href=\"java" TEMPLATE_UNSAFE_URL "\">");
    expect(
        "<a href=\"{{a}}:{{b}}\">", "{\"a\":\"javascript\",\"b\":\"x\"}",
        "<a href=\"javascript" TEMPLATE_UNSAFE_URL ":x\">");
    expect(
        "<a href=\"{{a}}&colon;x\">", "{\"a\":\"javascript\"}",
        "<a href=\"javascript" TEMPLATE_UNSAFE_URL "&colon;x\">");
    expect(
        "<a href=\"{{{a}}}\">", "{\"a\":\"&#106;avascript&colon;x\"}",
        "<a href=\"" TEMPLATE_UNSAFE_URL "\">");
    expect(
        "<a href=\"{{{a}}}\">", "{\"a\":\"java&Tab;script&#58x\"}",
        "<a href=\"" TEMPLATE_UNSAFE_URL "\">");
    expect(
        "<a href=\"{{#each a}}{{this}}{{/each}}\">", "{\"a\":[\"j\",\"avascript\",\":\",\"x\"]}",
        "<a href=\"javascript" TEMPLATE_UNSAFE_URL "x\">");
}

static void finding_16_other_values_stay_as_they_are(void **state)
{
    (void)state;
    static const char *const good[] = {
        "https://a.example/x?y:z",
        "HTTP://a.example",
        "mailto:a@b.example",
        "tel:+491",
        "cid:logo",
        "/path:1",
        "path/x:1",
        "#top:1",
        "?q=a:b",
        "12:30",
        "//a.example:80/",
        "plain",
        "",
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        char json[128];
        (void)snprintf(json, sizeof json, "{\"u\":\"%s\"}", good[i]);
        json_t *variables = json_loads(json, 0, NULL);
        TemplateMeter meter = {.cpu_us = NULL};
        Error err = {0};
        Buf out;
        buf_init(&out, TEMPLATE_OUTPUT_MAX);
        assert_true(render_with("<a href=\"{{u}}\">", variables, &meter, &out, &err));
        assert_int_equal(meter.unsafe_urls, 0);
        assert_null(strstr(buf_c(&out), TEMPLATE_UNSAFE_URL));
        buf_done(&out);
        json_decref(variables);
    }
    static const char json[] = "{\"u\":\"Note: x\",\"s\":\"myapp\",\"o\":true}";
    expect("<p>{{u}}</p>", json, "<p>Note: x</p>");
    expect("<p>src={{u}}</p>", json, "<p>src=Note: x</p>");
    expect("<p>say \"{{u}}\"</p>", json, "<p>say \"Note: x\"</p>");
    expect("<a title=\"{{u}}\">", json, "<a title=\"Note: x\">");
    expect("<!-- href=\"{{u}}\" -->", json, "<!-- href=\"Note: x\" -->");
    expect("<script>a.href=\"{{u}}\"</script>", json, "<script>a.href=\"Note: x\"</script>");
    // What the author wrote is the author's.
    expect("<a href=\"myapp://{{u}}\">", json, "<a href=\"myapp://Note: x\">");
    expect(
        "<a href=\"{{#if o}}myapp://a{{else}}myapp://b{{/if}}\">", json, "<a href=\"myapp://a\">");
    expect("{{s}}: {{u}}", json, "myapp: Note: x");
    expect("<a href=\"?x={{u}}\">", json, "<a href=\"?x=Note: x\">");
}

static void expect_each_refused(const Place *places, size_t count, const char *value)
{
    char json[128];
    (void)snprintf(json, sizeof json, "{\"u\":\"%s\"}", value);
    for (size_t i = 0; i < count; i++) {
        expect_refused(&places[i], json);
    }
}

static void finding_16_a_value_makes_no_css_that_runs(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "url(javascript:alert(1))",     "red;background:URL( 'JavaScript:x')",
        "url(data:text/css,x)",         "expression(alert(1))",
        "red; x:expre ssion (1)",       "x:exp/**/ression(1)",
        "exp\\\\72 ession(1)",          "x;behavior:url(/a.htc)",
        "-moz-binding : url(/a)",       "@import '/a'",
        "red; background: u\\\\72l(x)",
    };
    static const Place css[] = {
        {"<p style=\"", "\">"},
        {"<p class=x STYLE = 'color:red;x:", "'>"},
        {"<p style=", ">"},
        {"<style>", "</style>"},
        {"<style type=\"text/css\">a > b {color:", " }</style><p>"},
        {"<!--[if mso]><style>", "</style>"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        expect_each_refused(css, sizeof css / sizeof *css, bad[i]);
    }
    static const Place url[] = {
        {"<p style=\"background:url(", ")\">"},
        {"<p style=\"background:url(  '", "')\">"},
        {"<p style='background : URL (\"", "\")'>"},
        {"<style>a{b:url(x);c:url(", ")}</style>"},
    };
    expect_each_refused(url, sizeof url / sizeof *url, "javascript:x");
    expect_each_refused(url, sizeof url / sizeof *url, "java\\tscript:x");
    expect_each_refused(url, sizeof url / sizeof *url, "data:text/html,x");
    static const char pieces[] = "{\"a\":\"java\",\"b\":\"script:x\",\"c\":\"/\",\"d\":\"*\"}";
    expect(
        "<p style='a:url({{a}}{{b}})'>", pieces, "<p style='a:url(java" TEMPLATE_UNSAFE_URL ")'>");
    expect(
        "<p style='a:url({{a}}script:)'>", pieces,
        "<p style='a:url(java" TEMPLATE_UNSAFE_URL "script:)'>");
    expect("<p style='a{{c}}{{d}}'>", pieces, "<p style='a/" TEMPLATE_UNSAFE_URL "'>");
}

static void finding_16_ordinary_css_passes(void **state)
{
    (void)state;
    static const char *const good[] = {
        "#ff8800",
        "12px",
        "50%",
        "Arial, sans-serif",
        "rgb(1, 2, 3)",
        "calc(100% - 2px)",
        "color:red;font-size:12px",
        "scroll-behavior:smooth",
        "url(https://a.test/b.png)",
        "url(/b.png)",
        "1 / 2 * 3",
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        char json[128], styled[128], element[128];
        (void)snprintf(json, sizeof json, "{\"u\":\"%s\"}", good[i]);
        (void)snprintf(styled, sizeof styled, "<p style=\"x:%s\">", good[i]);
        (void)snprintf(element, sizeof element, "<style>a{x:%s }</style>", good[i]);
        expect("<p style=\"x:{{u}}\">", json, styled);
        expect("<style>a{x:{{u}} }</style>", json, element);
    }
    static const char json[] = "{\"u\":\"x: expression(1) @import url(javascript:y) "
                               "\\\\\",\"c\":\"/*x*/@import url(data:a)\"}";
    expect("<p>{{u}}</p>", json, "<p>x: expression(1) @import url(javascript:y) \\</p>");
    expect("<a title='{{u}}'>", json, "<a title='x: expression(1) @import url(javascript:y) \\'>");
    expect("<style>{{{c}}}</style>", json, "<style>/*x*/@import url(data:a)</style>");
    expect(
        "<p style='a:b'>{{u}}</p>", json,
        "<p style='a:b'>x: expression(1) @import url(javascript:y) \\</p>");
}

static void finding_16_a_refresh_goes_to_no_url_that_runs(void **state)
{
    (void)state;
    static const Place url[] = {
        {"<meta http-equiv=\"refresh\" content=\"0;url=", "\">"},
        {"<META content='5 , URL = ", "' http-equiv=refresh>"},
        {"<meta http-equiv=refresh content='0; ", "'>"},
        {"<meta http-equiv=refresh content=\"0;url='", "'\">"},
        {"<meta http-equiv=refresh content=\"3 ", "\">"},
    };
    expect_each_refused(url, sizeof url / sizeof *url, "javascript:x");
    expect_each_refused(url, sizeof url / sizeof *url, " Java\\nscript:x");
    expect_each_refused(url, sizeof url / sizeof *url, "data:text/html,x");
    expect_each_refused(&(Place){"<meta content=\"", "\">"}, 1, "0;url=javascript:x");
    expect_each_refused(&(Place){"<meta content=\"", "\">"}, 1, ".5;url='data:x");
    expect_each_refused(&(Place){"<meta content=\"0", "\">"}, 1, ";javascript:x");
    static const char json[] =
        "{\"u\":\"Rules; note: x\",\"s\":\"https://a.test/?b:c\",\"n\":\"10:30; at: x\"}";
    expect("<meta name=d content=\"{{u}}\">", json, "<meta name=d content=\"Rules; note: x\">");
    expect("<meta name=d content=\"{{n}}\">", json, "<meta name=d content=\"10:30; at: x\">");
    expect("<meta content=\"0;url={{s}}\">", json, "<meta content=\"0;url=https://a.test/?b:c\">");
}

// What is code takes words alone: an entity is a quote again before it runs.
static void finding_16_a_value_in_code_is_words(void **state)
{
    (void)state;
    static const Place code[] = {
        {"<p onclick=\"go('", "')\">"},
        {"<body\tOnLoad = '", "'>"},
        {"<iframe srcdoc=\"<b>", "</b>\">"},
        {"<p>on time</p><img onerror=", ">"},
    };
    expect_each_refused(code, sizeof code / sizeof *code, "');alert(1)");
    expect_each_refused(code, sizeof code / sizeof *code, "<script>");
    expect_each_refused(code, sizeof code / sizeof *code, "a\\\\b");
    static const char json[] = "{\"u\":\"A-1, B_2.\",\"q\":\"it's (on) = \\\\\"}";
    expect("<p onclick=\"go('{{u}}')\">", json, "<p onclick=\"go('A-1, B_2.')\">");
    expect(
        "<p onclick=\"go()\" title=\"{{q}}\">{{q}}", json,
        "<p onclick=\"go()\" title=\"it&#x27;s (on) &#x3D; \\\">it&#x27;s (on) &#x3D; \\");
}

// Only what is escaped for HTML is HTML.
static void finding_16_plain_text_has_no_urls(void **state)
{
    (void)state;
    Error err = {0};
    Buf out;
    json_t *variables = json_pack("{s:s}", "u", "javascript:x");
    Template *tpl = template_compile(STR("href=\"{{u}}\""), TEMPLATE_ESCAPE_NONE, NULL, &err);
    assert_non_null(tpl);
    buf_init(&out, TEMPLATE_OUTPUT_MAX);
    assert_true(template_render(tpl, variables, &out, &err));
    assert_string_equal(buf_c(&out), "href=\"javascript:x\"");
    template_free(tpl);
    buf_done(&out);
    json_decref(variables);
}

static int set_up(void **state)
{
    (void)state;
    tools = template_tools_new();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    template_tools_free(tools);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finding_03_a_number_has_a_bounded_exponent),
        cmocka_unit_test(finding_03_what_is_a_number_stays_one),
        cmocka_unit_test(finding_03_a_text_that_is_no_number_compares_as_a_text),
        cmocka_unit_test(finding_04_each_byte_that_is_looked_at_counts),
        cmocka_unit_test(finding_04_subexpressions_are_bounded_one_by_one),
        cmocka_unit_test(finding_04_a_formatter_for_each_round_counts),
        cmocka_unit_test(finding_04_a_render_over_its_time_is_ended),
        cmocka_unit_test(finding_04_a_small_render_asks_for_no_time),
        cmocka_unit_test(finding_04_a_call_is_looked_up_once),
        cmocka_unit_test(finding_16_a_value_makes_no_url_that_runs),
        cmocka_unit_test(finding_16_a_url_in_pieces_is_one_url),
        cmocka_unit_test(finding_16_other_values_stay_as_they_are),
        cmocka_unit_test(finding_16_a_value_makes_no_css_that_runs),
        cmocka_unit_test(finding_16_ordinary_css_passes),
        cmocka_unit_test(finding_16_a_refresh_goes_to_no_url_that_runs),
        cmocka_unit_test(finding_16_a_value_in_code_is_words),
        cmocka_unit_test(finding_16_plain_text_has_no_urls),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
