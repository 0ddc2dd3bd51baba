// SPDX-License-Identifier: Apache-2.0
#include "common/render/content.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/json/json_read.h"
#include "common/render/html_text.h"
#include "common/variables/variable_check.h"

enum {
    LINE_BYTES_MAX = 8 * 1024,
    DATA_BYTES_MAX = 16 * 1024,
    PARAMETERS_BYTES_MAX = 32 * 1024,
    LARGE_BYTES = 32 * 1024,
};

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
    case FAILURE_LIMIT:
        return "render_limit";
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

void draft_init(Draft *draft)
{
    *draft = (Draft){.reference = ""};
    buf_init(&draft->subject, LINE_BYTES_MAX);
    buf_init(&draft->html, TEMPLATE_OUTPUT_MAX);
    buf_init(&draft->text, TEMPLATE_OUTPUT_MAX);
    buf_init(&draft->title, LINE_BYTES_MAX);
    buf_init(&draft->data, DATA_BYTES_MAX);
    buf_init(&draft->parameters, PARAMETERS_BYTES_MAX);
}

void draft_done(Draft *draft)
{
    buf_done(&draft->subject);
    buf_done(&draft->html);
    buf_done(&draft->text);
    buf_done(&draft->title);
    buf_done(&draft->data);
    buf_done(&draft->parameters);
}

static void clear(Draft *draft)
{
    buf_clear(&draft->subject);
    buf_clear(&draft->html);
    buf_clear(&draft->text);
    buf_clear(&draft->title);
    buf_clear(&draft->data);
    buf_clear(&draft->parameters);
    draft->parameter_count = 0;
    draft->reference = "";
    draft->sms = (SmsSize){.segments = 0};
}

// ---- variables ----

bool parse_variables(Str text, json_t **ret_json, RenderFailure *failure)
{
    if (text.len == 0) {
        *ret_json = json_object();
        return true;
    }
    json_error_t where;
    json_t *json = json_read(text, 0, &where);
    if (json == NULL) {
        // The parser's own text may quote a value, which is personal data: only the place is named.
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

static bool check_variable(
    const Stentor__V1__TemplateVariable *variable, const json_t *variables, RenderFailure *failure)
{
    const json_t *value = template_lookup(variables, str_from(variable->name));
    if (value == NULL || json_is_null(value)) {
        return !variable->required || render_fail(
                                          failure, FAILURE_MISSING_VARIABLE,
                                          "required variable '%.200s' is missing", variable->name);
    }
    VariableFault fault;
    bool deep =
        variable->format[0] != '\0' || variable->items != NULL || variable->n_properties > 0;
    Arena *arena = deep ? arena_new(0) : NULL; // a plain type needs none
    bool ok = variable_check(variable, value, arena, &fault);
    arena_free(arena);
    static const FailureCode codes[] = {
        [VARIABLE_FINE] = FAILURE_NONE,
        [VARIABLE_MISSING] = FAILURE_MISSING_VARIABLE,
        [VARIABLE_TYPE] = FAILURE_WRONG_VARIABLE_TYPE,
        [VARIABLE_VALUE] = FAILURE_INVALID_VARIABLES,
    };
    return ok ||
           render_fail(failure, codes[fault.kind], "variable '%s' %s", fault.path, fault.text);
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

static void add_text(json_t *variables, const char *name, const char *text)
{
    if (json_object_get(variables, name) == NULL) {
        (void)json_object_set_new(variables, name, json_string(text));
    }
}

static void add_object(json_t *variables, const char *name, json_t *object)
{
    if (object != NULL && json_object_get(variables, name) == NULL) {
        (void)json_object_set(variables, name, object);
    }
}

void add_surroundings(
    json_t *variables, const CompiledLocale *locale, json_t *theme, json_t *tenant)
{
    add_text(variables, "locale", locale->locale);
    add_text(variables, "direction", locale->direction);
    add_object(variables, "theme", theme);
    add_object(variables, "tenant", tenant);
}

json_t *tenant_theme(const Stentor__V1__Tenant *tenant)
{
    json_t *theme = json_object();
    for (size_t i = 0; i < tenant->n_theme; i++) {
        const Stentor__V1__ThemeValue *value = tenant->theme[i];
        (void)json_object_set_new(theme, value->name, json_string(value->value));
    }
    return theme;
}

json_t *tenant_names(const Stentor__V1__Tenant *tenant)
{
    return json_pack("{s:s,s:s}", "name", tenant->name, "id", tenant->tenant);
}

// ---- content ----

typedef struct Writing {
    const CompiledLocale *locale;
    const json_t *variables;
    TemplateContext context;
    Draft *draft;
} Writing;

// Nothing that a variable brings along can begin another header, or another line where one is
// meant.
static void flatten(Buf *line, size_t from)
{
    for (size_t i = from; i < line->len; i++) {
        unsigned char c = (unsigned char)line->ptr[i];
        if (c < 0x20 || c == 0x7f) {
            line->ptr[i] = ' ';
        }
    }
}

// Control characters but line breaks and tabs have no place in a text.
static void clean(Buf *text)
{
    for (size_t i = 0; i < text->len; i++) {
        unsigned char c = (unsigned char)text->ptr[i];
        if ((c < 0x20 && c != '\n' && c != '\r' && c != '\t') || c == 0x7f) {
            text->ptr[i] = ' ';
        }
    }
}

static bool render_part(
    const Writing *writing, const char *part, const Template *tpl, Buf *out, RenderFailure *failure)
{
    Error err = {0};
    if (tpl == NULL || template_render_in(tpl, &writing->context, writing->variables, out, &err)) {
        return true;
    }
    bool over = writing->context.meter != NULL && writing->context.meter->over;
    return render_fail(failure, over ? FAILURE_LIMIT : FAILURE_RENDER, "%s: %s", part, err.text);
}

// What is done with a large part once it is rendered takes time too.
static bool within_time(
    const Writing *writing, const char *part, const Buf *done, RenderFailure *failure)
{
    Error err = {0};
    if (done->len < LARGE_BYTES || template_meter_ask(writing->context.meter, &err)) {
        return true;
    }
    return render_fail(failure, FAILURE_LIMIT, "%s: %s", part, err.text);
}

static bool render_line(
    const Writing *writing, const char *part, const Template *tpl, Buf *out, RenderFailure *failure)
{
    size_t from = out->len;
    if (!render_part(writing, part, tpl, out, failure)) {
        return false;
    }
    flatten(out, from);
    return true;
}

// ---- mails ----

static bool insert(Buf *html, size_t at, const char *text, size_t len)
{
    if (!buf_reserve(html, len)) {
        return false;
    }
    memmove(html->ptr + at + len, html->ptr + at, html->len - at);
    memcpy(html->ptr + at, text, len);
    html->len += len;
    return true;
}

// Where the content begins: behind <body>, else behind the head, else at the very beginning.
static size_t content_begin(Str html)
{
    static const char *const tags[] = {"body", "html"};
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
        ptrdiff_t at = html_after_tag(html, tags[i]);
        if (at >= 0) {
            return (size_t)at;
        }
    }
    return 0;
}

// The preview text that a mailbox shows next to the subject: first in the html, and not to be seen
// there.
static bool add_preheader(const Writing *writing, RenderFailure *failure)
{
    Draft *draft = writing->draft;
    Buf *html = &draft->html;
    Buf *line = &draft->data; // not used by mails
    if (writing->locale->preheader == NULL || html->len == 0) {
        return true;
    }
    buf_cstr(line, "<div style=\"display:none;max-height:0;overflow:hidden;mso-hide:all\">");
    if (!render_line(writing, "preheader", writing->locale->preheader, line, failure)) {
        return false;
    }
    buf_cstr(line, "</div>");
    bool ok = !line->full && insert(html, content_begin(buf_view(html)), line->ptr, line->len);
    buf_clear(line);
    return ok || render_fail(failure, FAILURE_RENDER, "preheader: the html with it is too large");
}

// A body of a right-to-left locale says so, unless its author did.
static bool add_direction(const Writing *writing, RenderFailure *failure)
{
    static const char open[] = "<div dir=\"rtl\">";
    static const char close[] = "</div>";
    Buf *html = &writing->draft->html;
    if (html->len == 0 || strcmp(writing->locale->direction, "rtl") != 0) {
        return true;
    }
    if (strstr(buf_c(html), "dir=") != NULL) {
        return true;
    }
    ptrdiff_t body = html_after_tag(buf_view(html), "body");
    bool ok = body >= 0 ? insert(html, (size_t)body - 1, " dir=\"rtl\"", 10)
                        : insert(html, content_begin(buf_view(html)), open, sizeof open - 1);
    if (body < 0 && html_after_tag(buf_view(html), "html") < 0) {
        ok = ok && buf_cstr(html, close);
    }
    return ok || render_fail(failure, FAILURE_RENDER, "html: too large");
}

static bool write_email(const Writing *writing, RenderFailure *failure)
{
    const CompiledLocale *locale = writing->locale;
    Draft *draft = writing->draft;
    if (!render_line(writing, "subject", locale->subject, &draft->subject, failure) ||
        !render_part(writing, "html", locale->html, &draft->html, failure) ||
        !render_part(writing, "text", locale->text, &draft->text, failure)) {
        return false;
    }
    if (locale->text == NULL && draft->html.len > 0) {
        html_to_text(buf_view(&draft->html), &draft->text);
        draft->text.full = false; // a text longer than the html it is made from is cut
    }
    return within_time(writing, "html", &draft->html, failure) && add_direction(writing, failure) &&
           add_preheader(writing, failure);
}

// ---- the other channels ----

static bool write_sms(const Writing *writing, RenderFailure *failure)
{
    Draft *draft = writing->draft;
    if (!render_part(writing, "text", writing->locale->text, &draft->text, failure)) {
        return false;
    }
    clean(&draft->text);
    draft->sms = sms_measure(buf_view(&draft->text));
    if (!within_time(writing, "text", &draft->text, failure)) {
        return false;
    }
    if (draft->sms.segments == 0) {
        return render_fail(failure, FAILURE_RENDER, "text: the SMS is empty");
    }
    return draft->sms.segments <= SMS_SEGMENTS_MAX ||
           render_fail(
               failure, FAILURE_RENDER, "text: the SMS takes %u segments, at most %d are allowed",
               draft->sms.segments, SMS_SEGMENTS_MAX);
}

static bool check_data(Buf *data, RenderFailure *failure)
{
    json_error_t where;
    json_t *json = data->len > 0 ? json_read(buf_view(data), 0, &where) : json_object();
    bool ok = json_is_object(json);
    if (json == NULL) {
        (void)render_fail(
            failure, FAILURE_RENDER, "data: not JSON (line %d, column %d of what came out)",
            where.line, where.column);
    } else if (!ok) {
        (void)render_fail(failure, FAILURE_RENDER, "data: not a JSON object");
    }
    json_decref(json);
    return ok;
}

// push and inapp: title, body, data.
static bool write_card(const Writing *writing, RenderFailure *failure)
{
    Draft *draft = writing->draft;
    if (!render_line(writing, "title", writing->locale->title, &draft->title, failure) ||
        !render_part(writing, "text", writing->locale->text, &draft->text, failure) ||
        !render_part(writing, "data", writing->locale->data, &draft->data, failure)) {
        return false;
    }
    clean(&draft->text);
    return check_data(&draft->data, failure);
}

static bool write_webhook(const Writing *writing, RenderFailure *failure)
{
    Draft *draft = writing->draft;
    if (!render_part(writing, "text", writing->locale->text, &draft->text, failure) ||
        !render_part(writing, "data", writing->locale->data, &draft->data, failure)) {
        return false;
    }
    clean(&draft->text);
    return check_data(&draft->data, failure);
}

static bool write_whatsapp(const Writing *writing, RenderFailure *failure)
{
    const CompiledLocale *locale = writing->locale;
    Draft *draft = writing->draft;
    draft->reference = locale->reference;
    for (size_t i = 0; i < locale->parameter_count; i++) {
        if (!render_line(
                writing, "parameter", locale->parameters[i], &draft->parameters, failure)) {
            return false;
        }
        if (!buf_char(&draft->parameters, '\0')) {
            return render_fail(
                failure, FAILURE_RENDER, "the parameters have more than %d bytes",
                PARAMETERS_BYTES_MAX);
        }
        draft->parameter_count++;
    }
    return render_part(writing, "text", locale->text, &draft->text, failure);
}

static Writing begin_writing(
    const CompiledLocale *locale, const json_t *variables, const ContentContext *context,
    Draft *draft)
{
    return (Writing){
        .locale = locale,
        .variables = variables,
        .context =
            {
                .locale = str_from(locale->locale),
                .zone = context->zone,
                .strict = context->strict,
                .tools = context->tools,
                .meter = context->meter,
                .assets = context->assets,
                .as_written = context->as_written,
            },
        .draft = draft,
    };
}

bool render_subject_line(
    const CompiledLocale *locale, const json_t *variables, const ContentContext *context, Buf *line)
{
    const Template *tpl = locale->subject != NULL ? locale->subject : locale->title;
    Writing writing = begin_writing(locale, variables, context, NULL);
    RenderFailure failure;
    buf_clear(line);
    return tpl != NULL && render_line(&writing, "subject", tpl, line, &failure) && line->len > 0;
}

bool render_content(
    const CompiledVersion *version, const CompiledLocale *locale, const json_t *variables,
    const ContentContext *context, Draft *draft, RenderFailure *failure)
{
    Writing writing = begin_writing(locale, variables, context, draft);
    clear(draft);
    switch (version->channel) {
    case CHANNEL_EMAIL:
        return write_email(&writing, failure);
    case CHANNEL_SMS:
        return write_sms(&writing, failure);
    case CHANNEL_PUSH:
    case CHANNEL_INAPP:
        return write_card(&writing, failure);
    case CHANNEL_WHATSAPP:
        return write_whatsapp(&writing, failure);
    case CHANNEL_VOICE:
        if (!render_part(&writing, "text", locale->text, &draft->text, failure)) {
            return false;
        }
        clean(&draft->text);
        return true;
    case CHANNEL_WEBHOOK:
        return write_webhook(&writing, failure);
    case CHANNEL_NONE:
    case CHANNEL_COUNT:
        break;
    }
    return render_fail(
        failure, FAILURE_UNSUPPORTED_CHANNEL, "channel '%s' cannot be rendered",
        channel_name(version->channel));
}
