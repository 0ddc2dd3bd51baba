// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/model/enums.h"
#include "services/renderer/render_email.h"

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

static Template *compile(const char *source, TemplateEscape escape)
{
    Error err = {0};
    Template *tpl = template_compile(str_from(source), escape, NULL, &err);
    assert_non_null(tpl);
    return tpl;
}

static void each_part_is_escaped_as_its_kind_asks(void **state)
{
    (void)state;
    CompiledLocale locale = {
        .subject = compile("Re: {{v}}", TEMPLATE_ESCAPE_NONE),
        .html = compile("<p>{{v}}</p>", TEMPLATE_ESCAPE_HTML),
        .text = compile("{{v}}", TEMPLATE_ESCAPE_NONE),
    };
    EmailDraft draft;
    email_draft_init(&draft);
    RenderFailure failure = {.code = FAILURE_NONE};
    json_t *variables = json_pack("{s:s}", "v", "<&>");
    assert_true(render_email(&locale, variables, &draft, &failure));
    assert_string_equal(buf_c(&draft.subject), "Re: <&>");
    assert_string_equal(buf_c(&draft.html), "<p>&lt;&amp;&gt;</p>");
    assert_string_equal(buf_c(&draft.text), "<&>");
    json_decref(variables);
    email_draft_done(&draft);
    template_free(locale.subject);
    template_free(locale.html);
    template_free(locale.text);
}

static void a_subject_cannot_begin_another_header(void **state)
{
    (void)state;
    CompiledLocale locale = {.subject = compile("Hi {{v}}", TEMPLATE_ESCAPE_NONE)};
    EmailDraft draft;
    email_draft_init(&draft);
    RenderFailure failure = {.code = FAILURE_NONE};
    json_t *variables = json_pack("{s:s}", "v", "a\r\nBcc: b@c\t\x7f\x01.");
    assert_true(render_email(&locale, variables, &draft, &failure));
    assert_string_equal(buf_c(&draft.subject), "Hi a  Bcc: b@c   .");
    json_decref(variables);
    email_draft_done(&draft);
    template_free(locale.subject);
}

static void a_draft_keeps_nothing_of_the_mail_before(void **state)
{
    (void)state;
    CompiledLocale both = {
        .html = compile("html", TEMPLATE_ESCAPE_HTML),
        .text = compile("text", TEMPLATE_ESCAPE_NONE),
    };
    CompiledLocale html_only = {.html = both.html};
    EmailDraft draft;
    email_draft_init(&draft);
    RenderFailure failure = {.code = FAILURE_NONE};
    assert_true(render_email(&both, NULL, &draft, &failure));
    assert_true(render_email(&html_only, NULL, &draft, &failure));
    assert_string_equal(buf_c(&draft.html), "html");
    assert_string_equal(buf_c(&draft.text), "");
    email_draft_done(&draft);
    template_free(both.html);
    template_free(both.text);
}

static void a_render_error_names_its_part(void **state)
{
    (void)state;
    CompiledLocale locale = {.html = compile("{{v}}", TEMPLATE_ESCAPE_HTML)};
    json_t *deep = json_array();
    for (int i = 0; i < 100; i++) {
        deep = json_pack("[o]", deep);
    }
    json_t *variables = json_pack("{s:o}", "v", deep);
    EmailDraft draft;
    email_draft_init(&draft);
    RenderFailure failure = {.code = FAILURE_NONE};
    assert_false(render_email(&locale, variables, &draft, &failure));
    assert_int_equal(failure.code, FAILURE_RENDER);
    assert_string_equal(failure.reason, "html: an array nested deeper than 32 cannot be printed");
    email_draft_done(&draft);
    json_decref(variables);
    template_free(locale.html);
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
        cmocka_unit_test(each_part_is_escaped_as_its_kind_asks),
        cmocka_unit_test(a_subject_cannot_begin_another_header),
        cmocka_unit_test(a_draft_keeps_nothing_of_the_mail_before),
        cmocka_unit_test(a_render_error_names_its_part),
        cmocka_unit_test(every_failure_has_a_name_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
