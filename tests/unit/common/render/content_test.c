// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "common/codec/event.h"
#include "common/render/content.h"

static void a_missing_required_variable_is_named(void **state)
{
    (void)state;
    Stentor__V1__TemplateVariable id;
    stentor__v1__template_variable__init(&id);
    id.name = (char[]){"order.id"};
    id.required = true;
    Stentor__V1__TemplateVersion version;
    stentor__v1__template_version__init(&version);
    version.variables = (Stentor__V1__TemplateVariable *[]){&id};
    version.n_variables = 1;
    static const char *const without[] = {
        "{}", "{\"order\":{}}", "{\"order\":{\"id\":null}}", "{\"order\":\"text\"}"};
    for (size_t i = 0; i < sizeof without / sizeof *without; i++) {
        RenderFailure failure = {.code = FAILURE_NONE};
        json_t *variables = json_loads(without[i], 0, NULL);
        assert_false(check_variables(&version, variables, &failure));
        assert_int_equal(failure.code, FAILURE_MISSING_VARIABLE);
        assert_string_equal(failure.reason, "required variable 'order.id' is missing");
        json_decref(variables);
    }
}

// 1: must pass, 0: must be refused.
static void check_type(const char *type, const char *json, bool fits)
{
    Stentor__V1__TemplateVariable variable;
    stentor__v1__template_variable__init(&variable);
    char name[] = "v";
    char type_copy[16];
    assert_true(str_to_c(str_from(type), type_copy, sizeof type_copy));
    variable.name = name;
    variable.type = type_copy;
    Stentor__V1__TemplateVersion version;
    stentor__v1__template_version__init(&version);
    version.variables = (Stentor__V1__TemplateVariable *[]){&variable};
    version.n_variables = 1;
    RenderFailure failure = {.code = FAILURE_NONE};
    json_t *variables = json_loads(json, 0, NULL);
    assert_int_equal(check_variables(&version, variables, &failure), fits);
    assert_int_equal(failure.code, fits ? FAILURE_NONE : FAILURE_WRONG_VARIABLE_TYPE);
    json_decref(variables);
}

static void a_variable_must_be_of_its_declared_type(void **state)
{
    (void)state;
    check_type("string", "{\"v\":\"x\"}", true);
    check_type("string", "{\"v\":1}", false);
    check_type("number", "{\"v\":1}", true);
    check_type("number", "{\"v\":1.5}", true);
    check_type("number", "{\"v\":\"1\"}", false);
    check_type("boolean", "{\"v\":false}", true);
    check_type("boolean", "{\"v\":0}", false);
    check_type("array", "{\"v\":[]}", true);
    check_type("array", "{\"v\":{}}", false);
    check_type("object", "{\"v\":{}}", true);
    check_type("", "{\"v\":[1]}", true);
    check_type("number", "{}", true);
    check_type("number", "{\"v\":null}", true);
}

static void variables_must_be_a_json_object(void **state)
{
    (void)state;
    static const char *const bad[] = {"[1]", "{\"secret\":\"a@b.c\"", "{\"a\":tru}", "nonsense"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        RenderFailure failure = {.code = FAILURE_NONE};
        json_t *json = NULL;
        assert_false(parse_variables(str_from(bad[i]), &json, &failure));
        assert_int_equal(failure.code, FAILURE_INVALID_VARIABLES);
        assert_null(strstr(failure.reason, "a@b.c"));
    }
    RenderFailure failure = {.code = FAILURE_NONE};
    json_t *json = NULL;
    assert_true(parse_variables(STR(""), &json, &failure));
    assert_int_equal(json_object_size(json), 0);
    json_decref(json);
}

// ---- words ----

// A version of one locale, as CONFIG would hold it.
typedef struct Variant {
    Stentor__V1__Channel channel;
    const char *locale;
    const char *subject;
    const char *preheader;
    const char *html;
    const char *text;
    const char *title;
    const char *data;
    const char *reference;
    const char *parameters[3];
    const char *direction;
} Variant;

static char *copy(Arena *arena, const char *text)
{
    return arena_cstr(arena, str_from(text));
}

static CompiledVersion *compile(const Variant *variant)
{
    Arena *arena = arena_new(0);
    Stentor__V1__LocaleVariant locale;
    Stentor__V1__TemplateVersion version;
    stentor__v1__locale_variant__init(&locale);
    stentor__v1__template_version__init(&version);
    locale.locale = copy(arena, variant->locale != NULL ? variant->locale : "en-US");
    locale.subject = copy(arena, variant->subject);
    locale.preheader = copy(arena, variant->preheader);
    locale.html = copy(arena, variant->html);
    locale.text = copy(arena, variant->text);
    locale.title = copy(arena, variant->title);
    locale.data = copy(arena, variant->data);
    locale.reference = copy(arena, variant->reference);
    locale.direction = copy(arena, variant->direction);
    char *parameters[3];
    locale.parameters = parameters;
    while (locale.n_parameters < 3 && variant->parameters[locale.n_parameters] != NULL) {
        parameters[locale.n_parameters] = copy(arena, variant->parameters[locale.n_parameters]);
        locale.n_parameters++;
    }
    version.channel = variant->channel;
    version.locales = (Stentor__V1__LocaleVariant *[]){&locale};
    version.n_locales = 1;
    Str packed;
    Error err = {0};
    assert_true(event_pack(&version.base, arena, &packed, &err));
    CompiledVersion *compiled = version_compile(packed);
    arena_free(arena);
    return compiled;
}

// Renders; the caller frees nothing, `draft` is its own.
static bool write(const Variant *variant, const char *json, Draft *draft, RenderFailure *failure)
{
    CompiledVersion *version = compile(variant);
    if (version->broken.kind != ERROR_NONE) {
        fail_msg("%s", version->broken.text);
    }
    json_t *variables = json_loads(json, 0, NULL);
    assert_non_null(variables);
    const CompiledLocale *locale = version_locale(version, STR(""));
    ContentContext context = {.zone = STR("Europe/Berlin")};
    add_surroundings(variables, locale, NULL, NULL);
    bool ok = render_content(version, locale, variables, &context, draft, failure);
    draft->reference = "";
    json_decref(variables);
    version_free(version);
    return ok;
}

static void must_write(const Variant *variant, const char *json, Draft *draft)
{
    RenderFailure failure = {.code = FAILURE_NONE};
    if (!write(variant, json, draft, &failure)) {
        fail_msg("%s", failure.reason);
    }
}

static void must_fail(const Variant *variant, const char *json, const char *expected)
{
    Draft draft;
    RenderFailure failure = {.code = FAILURE_NONE};
    draft_init(&draft);
    assert_false(write(variant, json, &draft, &failure));
    if (strstr(failure.reason, expected) == NULL) {
        fail_msg("expected '%s' in '%s'", expected, failure.reason);
    }
    assert_int_equal(failure.code, FAILURE_RENDER);
    draft_done(&draft);
}

static void finding_04_too_many_steps_have_a_code_of_their_own(void **state)
{
    (void)state;
    RenderFailure failure = {.code = FAILURE_NONE};
    TemplateMeter meter = {.over = false};
    CompiledLocale locale = {.locale = "en", .direction = "ltr"};
    CompiledVersion version = {.channel = CHANNEL_SMS};
    ContentContext context = {.meter = &meter};
    Error err = {0};
    Draft draft;
    draft_init(&draft);
    json_t *array = json_array();
    for (int i = 0; i < 10001; i++) {
        (void)json_array_append_new(array, json_null());
    }
    json_t *variables = json_pack("{s:o}", "a", array);
    locale.text = template_compile(STR("{{#each a}}x{{/each}}"), TEMPLATE_ESCAPE_NONE, NULL, &err);
    assert_non_null(locale.text);
    assert_false(render_content(&version, &locale, variables, &context, &draft, &failure));
    assert_int_equal(failure.code, FAILURE_LIMIT);
    assert_string_equal(failure_code_name(failure.code), "render_limit");
    assert_string_equal(
        failure.reason,
        "text: line 1, column 1: more than 10000 rounds of loops and partials in one render");
    template_free(locale.text);
    json_decref(variables);
    draft_done(&draft);
}

static int64_t late_us(void)
{
    static int64_t now_us;
    return now_us += 1000;
}

// What is made of a large part takes time as well.
static void finding_04_time_is_asked_behind_large_parts(void **state)
{
    (void)state;
    RenderFailure failure = {.code = FAILURE_NONE};
    TemplateMeter meter = {.cpu_us = late_us, .max_us = 500, .until_us = 1};
    CompiledLocale locale = {.locale = "en", .direction = "ltr"};
    CompiledVersion version = {.channel = CHANNEL_EMAIL};
    ContentContext context = {.meter = &meter};
    Error err = {0};
    Draft draft;
    draft_init(&draft);
    char *html = calloc(1, 40001);
    assert_non_null(html);
    memset(html, 'x', 40000);
    json_t *variables = json_object();
    locale.html = template_compile(str_from(html), TEMPLATE_ESCAPE_HTML, NULL, &err);
    assert_non_null(locale.html);
    assert_false(render_content(&version, &locale, variables, &context, &draft, &failure));
    assert_int_equal(failure.code, FAILURE_LIMIT);
    template_free(locale.html);
    json_decref(variables);
    free(html);
    draft_done(&draft);
}

static void each_part_is_escaped_as_its_kind_asks(void **state)
{
    (void)state;
    Draft draft;
    draft_init(&draft);
    must_write(
        &(Variant){.subject = "Re: {{v}}", .html = "<p>{{v}}</p>", .text = "{{v}}"},
        "{\"v\":\"<&>\"}", &draft);
    assert_string_equal(buf_c(&draft.subject), "Re: <&>");
    assert_string_equal(buf_c(&draft.html), "<p>&lt;&amp;&gt;</p>");
    assert_string_equal(buf_c(&draft.text), "<&>");
    draft_done(&draft);
}

static void a_line_cannot_begin_another_header(void **state)
{
    (void)state;
    static const char json[] = "{\"v\":\"a\\r\\nBcc: b@c\\t\\u007f\\u0001.\"}";
    Draft draft;
    draft_init(&draft);
    must_write(&(Variant){.subject = "Hi {{{v}}}", .text = "x"}, json, &draft);
    assert_string_equal(buf_c(&draft.subject), "Hi a  Bcc: b@c   .");
    must_write(
        &(Variant){.channel = STENTOR__V1__CHANNEL__CHANNEL_PUSH, .title = "{{v}}"}, json, &draft);
    assert_string_equal(buf_c(&draft.title), "a  Bcc: b@c   .");
    draft_done(&draft);
}

static void a_draft_keeps_nothing_of_the_one_before(void **state)
{
    (void)state;
    Draft draft;
    draft_init(&draft);
    must_write(&(Variant){.subject = "s", .html = "html", .text = "text"}, "{}", &draft);
    must_write(
        &(Variant){.channel = STENTOR__V1__CHANNEL__CHANNEL_SMS, .text = "short"}, "{}", &draft);
    assert_string_equal(buf_c(&draft.html), "");
    assert_string_equal(buf_c(&draft.subject), "");
    assert_string_equal(buf_c(&draft.text), "short");
    draft_done(&draft);
}

static void a_preheader_is_first_and_not_seen(void **state)
{
    (void)state;
    Draft draft;
    draft_init(&draft);
    static const char hidden[] =
        "<div style=\"display:none;max-height:0;overflow:hidden;mso-hide:all\">Now &lt;b&gt;</div>";
    must_write(
        &(Variant){
            .subject = "s",
            .preheader = "Now {{v}}",
            .html = "<!-- <body> --><html><body class=\"a>b\"><p>x</p></body></html>"},
        "{\"v\":\"<b>\"}", &draft);
    const char *at = strstr(buf_c(&draft.html), hidden);
    assert_non_null(at);
    assert_int_equal(at - draft.html.ptr, strlen("<!-- <body> --><html><body class=\"a>b\">"));
    assert_string_equal(buf_c(&draft.text), "x\n");
    must_write(
        &(Variant){.subject = "s", .preheader = "Now {{v}}", .html = "<p>x</p>"}, "{\"v\":\"<b>\"}",
        &draft);
    assert_ptr_equal(strstr(buf_c(&draft.html), hidden), draft.html.ptr);
    draft_done(&draft);
}

static void a_right_to_left_mail_says_so(void **state)
{
    (void)state;
    Draft draft;
    draft_init(&draft);
    must_write(&(Variant){.locale = "ps-AF", .html = "<p>x</p>"}, "{}", &draft);
    assert_string_equal(buf_c(&draft.html), "<div dir=\"rtl\"><p>x</p></div>");
    must_write(&(Variant){.locale = "ar", .html = "<body a=\"b\"><p>x</p></body>"}, "{}", &draft);
    assert_string_equal(buf_c(&draft.html), "<body a=\"b\" dir=\"rtl\"><p>x</p></body>");
    must_write(
        &(Variant){.locale = "he", .html = "<p dir=\"{{direction}}\" lang=\"{{locale}}\">"}, "{}",
        &draft);
    assert_string_equal(buf_c(&draft.html), "<p dir=\"rtl\" lang=\"he\">");
    must_write(&(Variant){.locale = "en", .direction = "rtl", .html = "<p>x</p>"}, "{}", &draft);
    assert_string_equal(buf_c(&draft.html), "<div dir=\"rtl\"><p>x</p></div>");
    must_write(&(Variant){.locale = "fa-AF", .direction = "ltr", .html = "y"}, "{}", &draft);
    assert_string_equal(buf_c(&draft.html), "y");
    draft_done(&draft);
}

static void formats_are_those_of_the_words_locale(void **state)
{
    (void)state;
    Draft draft;
    draft_init(&draft);
    must_write(
        &(Variant){.locale = "de-DE", .text = "{{currency n \"EUR\"}} {{date t \"datetime\"}}"},
        "{\"n\":1234.5,\"t\":\"2026-11-21T23:30:00Z\"}", &draft);
    assert_string_equal(buf_c(&draft.text), "1.234,50\xc2\xa0\xe2\x82\xac 22.11.2026, 00:30");
    draft_done(&draft);
}

static void an_sms_is_measured(void **state)
{
    (void)state;
    static const Variant sms = {.channel = STENTOR__V1__CHANNEL__CHANNEL_SMS, .text = "Code {{c}}"};
    char json[2000] = "{\"c\":\"";
    Draft draft;
    draft_init(&draft);
    must_write(&sms, "{\"c\":\"1\\u00072\"}", &draft);
    assert_string_equal(buf_c(&draft.text), "Code 1 2");
    assert_int_equal(draft.sms.segments, 1);
    must_write(&sms, "{\"c\":\"\u06f1\"}", &draft);
    assert_true(draft.sms.ucs2);
    memset(json + 6, 'x', 1600);
    memcpy(json + 1606, "\"}", 3);
    must_fail(&sms, json, "the SMS takes 11 segments, at most 10 are allowed");
    must_fail(&(Variant){.channel = sms.channel, .text = "{{c}}"}, "{}", "the SMS is empty");
    draft_done(&draft);
}

static void data_is_json_whatever_the_variables_hold(void **state)
{
    (void)state;
    Draft draft;
    draft_init(&draft);
    static const Variant push = {
        .channel = STENTOR__V1__CHANNEL__CHANNEL_PUSH,
        .title = "t",
        .text = "Hi {{v}}",
        .data = "{\"link\":\"app://x?{{v}}\",\"n\":{{n}} }",
    };
    must_write(&push, "{\"v\":\"a\\\",\\\"admin\\\":\\\"\\u0001\\\\\",\"n\":5 }", &draft);
    assert_string_equal(
        buf_c(&draft.data), "{\"link\":\"app://x?a\\\",\\\"admin\\\":\\\"\\u0001\\\\\",\"n\":5 }");
    must_fail(&push, "{\"n\":\"[\"}", "data: not JSON (line 1");
    must_fail(
        &(Variant){.channel = push.channel, .text = "x", .data = "[1]"}, "{}",
        "data: not a JSON object");
    draft_done(&draft);
}

static void whatsapp_has_parameters_of_one_line_each(void **state)
{
    (void)state;
    Draft draft;
    draft_init(&draft);
    must_write(
        &(Variant){
            .channel = STENTOR__V1__CHANNEL__CHANNEL_WHATSAPP,
            .reference = "order_shipped",
            .parameters = {"{{v}}", "#{{n}}"}},
        "{\"v\":\"a\\nb\",\"n\":7}", &draft);
    assert_int_equal(draft.parameter_count, 2);
    assert_string_equal(draft.parameters.ptr, "a b");
    assert_string_equal(draft.parameters.ptr + 4, "#7");
    draft_done(&draft);
}

static void a_locale_lacks_what_its_channel_needs(void **state)
{
    (void)state;
    static const struct {
        Variant variant;
        const char *expected;
    } rows[] = {
        {{.subject = "s"}, "locale 'en-US' has neither html nor text"},
        {{.channel = STENTOR__V1__CHANNEL__CHANNEL_SMS, .html = "x"}, "has no text"},
        {{.channel = STENTOR__V1__CHANNEL__CHANNEL_PUSH, .html = "x"}, "neither title nor text"},
        {{.channel = STENTOR__V1__CHANNEL__CHANNEL_WHATSAPP}, "neither reference nor text"},
        {{.channel = STENTOR__V1__CHANNEL__CHANNEL_VOICE}, "has no text"},
        {{.channel = STENTOR__V1__CHANNEL__CHANNEL_WEBHOOK, .title = "x"}, "neither text nor data"},
        {{.text = "x", .preheader = "{{#if}}"}, "preheader: line 1, column 1"},
        {{.channel = STENTOR__V1__CHANNEL__CHANNEL_WHATSAPP,
          .reference = "r",
          .parameters = {"ok", "{{"}},
         "parameter 2: line 1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CompiledVersion *version = compile(&rows[i].variant);
        if (strstr(version->broken.text, rows[i].expected) == NULL) {
            fail_msg("expected '%s' in '%s'", rows[i].expected, version->broken.text);
        }
        version_free(version);
    }
}

static void a_render_error_names_its_part_and_place(void **state)
{
    (void)state;
    must_fail(
        &(Variant){.html = "x\n{{number v}}"}, "{\"v\":\"secret\"}",
        "html: line 2, column 1: 'number': expected a number, got a text");
    must_fail(
        &(Variant){.text = "{{#each l}}{{#each ../l}}{{#each ../../l}}{{/each}}{{/each}}{{/each}}"},
        "{\"l\":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25]}",
        "more than 10000 rounds");
}

static const char *locale_for(const CompiledVersion *version, const char *wanted)
{
    return version_locale(version, str_from(wanted))->locale;
}

static void the_locale_is_exact_or_related_or_a_fallback_or_the_first(void **state)
{
    (void)state;
    CompiledLocale locales[] = {
        {.locale = "fr-FR"}, {.locale = "en-GB"}, {.locale = "en"},
        {.locale = "pt-BR"}, {.locale = "fa-AF"},
    };
    Stentor__V1__TemplateVersion source;
    stentor__v1__template_version__init(&source);
    CompiledVersion version = {.source = &source, .locales = locales, .locale_count = 5};
    assert_string_equal(locale_for(&version, "en-GB"), "en-GB");
    assert_string_equal(locale_for(&version, "EN-gb"), "en-GB");
    assert_string_equal(locale_for(&version, "en-US"), "en");
    assert_string_equal(locale_for(&version, "pt"), "pt-BR");
    assert_string_equal(locale_for(&version, "pt-PT"), "pt-BR");
    assert_string_equal(locale_for(&version, "de-DE"), "fr-FR");
    assert_string_equal(locale_for(&version, ""), "fr-FR");
    char missing[] = "uz-UZ";
    char dari[] = "fa-AF";
    char english[] = "en";
    source.fallback_locales = (char *[]){missing, dari, english};
    source.n_fallback_locales = 3;
    assert_string_equal(locale_for(&version, "ps-AF"), "fa-AF");
    assert_string_equal(locale_for(&version, "en-US"), "en");
    assert_string_equal(locale_for(&version, ""), "fa-AF");
}

static void every_failure_has_a_name_of_its_own(void **state)
{
    (void)state;
    for (FailureCode a = FAILURE_NONE + 1; a < FAILURE_COUNT; a++) {
        assert_true(failure_code_name(a)[0] != '\0');
        for (FailureCode b = a + 1; b < FAILURE_COUNT; b++) {
            assert_string_not_equal(failure_code_name(a), failure_code_name(b));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_missing_required_variable_is_named),
        cmocka_unit_test(a_variable_must_be_of_its_declared_type),
        cmocka_unit_test(variables_must_be_a_json_object),
        cmocka_unit_test(finding_04_too_many_steps_have_a_code_of_their_own),
        cmocka_unit_test(finding_04_time_is_asked_behind_large_parts),
        cmocka_unit_test(each_part_is_escaped_as_its_kind_asks),
        cmocka_unit_test(a_line_cannot_begin_another_header),
        cmocka_unit_test(a_draft_keeps_nothing_of_the_one_before),
        cmocka_unit_test(a_preheader_is_first_and_not_seen),
        cmocka_unit_test(a_right_to_left_mail_says_so),
        cmocka_unit_test(formats_are_those_of_the_words_locale),
        cmocka_unit_test(an_sms_is_measured),
        cmocka_unit_test(data_is_json_whatever_the_variables_hold),
        cmocka_unit_test(whatsapp_has_parameters_of_one_line_each),
        cmocka_unit_test(a_locale_lacks_what_its_channel_needs),
        cmocka_unit_test(a_render_error_names_its_part_and_place),
        cmocka_unit_test(the_locale_is_exact_or_related_or_a_fallback_or_the_first),
        cmocka_unit_test(every_failure_has_a_name_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
