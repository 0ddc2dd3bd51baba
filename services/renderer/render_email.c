// SPDX-License-Identifier: Apache-2.0
#include "services/renderer/render_email.h"

#include <stdarg.h>
#include <stdio.h>

enum { SUBJECT_BYTES_MAX = 8 * 1024 };

const char *failure_code_name(FailureCode code)
{
    switch (code) {
    case FAILURE_EXPIRED:
        return "expired";
    case FAILURE_UNSUPPORTED_CHANNEL:
        return "unsupported_channel";
    case FAILURE_RECIPIENT_ERASED:
        return "recipient_erased";
    case FAILURE_UNKNOWN_TEMPLATE:
        return "unknown_template";
    case FAILURE_INVALID_TEMPLATE:
        return "invalid_template";
    case FAILURE_INVALID_VARIABLES:
        return "invalid_variables";
    case FAILURE_MISSING_VARIABLE:
        return "missing_variable";
    case FAILURE_WRONG_VARIABLE_TYPE:
        return "wrong_variable_type";
    case FAILURE_RENDER:
        return "render_failed";
    case FAILURE_NONE:
    case FAILURE_COUNT:
        break;
    }
    return "";
}

bool render_fail(RenderFailure *failure, FailureCode code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    failure->code = code;
    vsnprintf(failure->reason, sizeof failure->reason, format, args);
    va_end(args);
    return false;
}

void email_draft_init(EmailDraft *draft)
{
    buf_init(&draft->subject, SUBJECT_BYTES_MAX);
    buf_init(&draft->html, TEMPLATE_OUTPUT_MAX);
    buf_init(&draft->text, TEMPLATE_OUTPUT_MAX);
}

void email_draft_done(EmailDraft *draft)
{
    buf_done(&draft->subject);
    buf_done(&draft->html);
    buf_done(&draft->text);
}

// ---- variables ----

bool parse_variables(Str text, json_t **ret_json, RenderFailure *failure)
{
    if (text.len == 0) {
        *ret_json = json_object();
        return true;
    }
    json_error_t where;
    json_t *json = json_loadb(text.ptr, text.len, 0, &where);
    if (json == NULL) {
        // The parser's own words may quote a value, which is personal data: only the place is told.
        return render_fail(
            failure, FAILURE_INVALID_VARIABLES, "the variables are not JSON (line %d, column %d)",
            where.line, where.column);
    }
    if (!json_is_object(json)) {
        json_decref(json);
        return render_fail(
            failure, FAILURE_INVALID_VARIABLES, "the variables are not a JSON object");
    }
    *ret_json = json;
    return true;
}

static const char *type_name(const json_t *json)
{
    switch (json_typeof(json)) {
    case JSON_STRING:
        return "string";
    case JSON_INTEGER:
    case JSON_REAL:
        return "number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "boolean";
    case JSON_ARRAY:
        return "array";
    case JSON_OBJECT:
        return "object";
    case JSON_NULL:
        break;
    }
    return "null";
}

static bool check_variable(
    const Stentor__V1__TemplateVariable *variable, const json_t *variables, RenderFailure *failure)
{
    const json_t *value = template_lookup(variables, str_from(variable->name));
    if (value == NULL || json_is_null(value)) {
        return !variable->required || render_fail(
                                          failure, FAILURE_MISSING_VARIABLE,
                                          "required variable '%.200s' is missing", variable->name);
    }
    Str type = str_from(variable->type);
    if (type.len > 0 && !str_eq(type, str_from(type_name(value)))) {
        return render_fail(
            failure, FAILURE_WRONG_VARIABLE_TYPE, "variable '%.180s' is of type %s, expected %.20s",
            variable->name, type_name(value), variable->type);
    }
    return true;
}

bool check_variables(
    const Stentor__V1__TemplateVersion *version, const json_t *variables, RenderFailure *failure)
{
    for (size_t i = 0; i < version->n_variables; i++) {
        if (!check_variable(version->variables[i], variables, failure)) {
            return false;
        }
    }
    return true;
}

// ---- words ----

// A subject is one line: nothing that a variable brings along can begin another header.
static void flatten(Buf *subject)
{
    for (size_t i = 0; i < subject->len; i++) {
        unsigned char c = (unsigned char)subject->ptr[i];
        if (c < 0x20 || c == 0x7f) {
            subject->ptr[i] = ' ';
        }
    }
}

static bool render_part(
    const char *part, const Template *tpl, const json_t *variables, Buf *out,
    RenderFailure *failure)
{
    Error err = {0};
    buf_clear(out);
    if (tpl == NULL || template_render(tpl, variables, out, &err)) {
        return true;
    }
    return render_fail(failure, FAILURE_RENDER, "%s: %s", part, err.text);
}

bool render_email(
    const CompiledLocale *locale, const json_t *variables, EmailDraft *draft,
    RenderFailure *failure)
{
    if (!render_part("subject", locale->subject, variables, &draft->subject, failure) ||
        !render_part("html", locale->html, variables, &draft->html, failure) ||
        !render_part("text", locale->text, variables, &draft->text, failure)) {
        return false;
    }
    flatten(&draft->subject);
    return true;
}
