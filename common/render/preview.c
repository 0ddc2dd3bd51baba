// SPDX-License-Identifier: Apache-2.0
#include "common/render/preview.h"

#include <string.h>

enum {
    SUBJECT_SHOWN = 78,      // RFC 5322: a line should not be longer
    HTML_SHOWN = 102 * 1024, // larger ones are cut off by widely used mailboxes
};

static void warn(json_t *warnings, const char *text)
{
    (void)json_array_append_new(warnings, json_string(text));
}

static void add_part(json_t *parts, const char *name, Buf *part)
{
    if (part->len > 0) {
        (void)json_object_set_new(parts, name, json_stringn(part->ptr, part->len));
    }
}

static json_t *parts_of(const CompiledVersion *version, Draft *draft)
{
    json_t *parts = json_object();
    add_part(parts, "subject", &draft->subject);
    add_part(parts, "html", &draft->html);
    add_part(parts, "text", &draft->text);
    add_part(parts, "title", &draft->title);
    add_part(parts, "data", &draft->data);
    if (version->channel != CHANNEL_WHATSAPP) {
        return parts;
    }
    const char *at = draft->parameters.ptr;
    json_t *parameters = json_array();
    for (size_t i = 0; i < draft->parameter_count; i++) {
        (void)json_array_append_new(parameters, json_string(at));
        at += strlen(at) + 1;
    }
    (void)json_object_set_new(parts, "reference", json_string(draft->reference));
    (void)json_object_set_new(parts, "parameters", parameters);
    return parts;
}

static void warn_of_mail(const CompiledLocale *locale, const Draft *draft, json_t *warnings)
{
    if (draft->subject.len == 0) {
        warn(warnings, "subject: missing");
    }
    if (draft->subject.len > SUBJECT_SHOWN) {
        warn(warnings, "subject: longer than 78 bytes; mailboxes cut it");
    }
    if (locale->text == NULL) {
        warn(warnings, "text: made from the html");
    }
    if (draft->html.len > HTML_SHOWN) {
        warn(warnings, "html: larger than 102 KB; some mailboxes cut it");
    }
}

static void warn_of_sms(const Draft *draft, json_t *warnings)
{
    if (draft->sms.ucs2) {
        warn(
            warnings, "text: a character is not in the GSM alphabet, so a segment has 70, not 160");
    }
    if (draft->sms.segments > 1) {
        warn(warnings, "text: takes more than one SMS");
    }
}

// A second rendering that minds what is missing: the first such variable is named.
static void warn_of_missing(
    const CompiledVersion *version, const CompiledLocale *locale, const json_t *variables,
    const ContentContext *context, json_t *warnings)
{
    ContentContext strict = *context;
    RenderFailure failure = {.code = FAILURE_NONE};
    Draft draft;
    draft_init(&draft);
    strict.strict = true;
    TemplateMeter meter = *context->meter; // of the same time
    strict.meter = &meter;
    if (!render_content(version, locale, variables, &strict, &draft, &failure)) {
        warn(warnings, failure.reason);
    }
    draft_done(&draft);
}

static json_t *data_of(const CompiledVersion *version, const PreviewAsk *ask)
{
    json_t *data = ask->data != NULL ? json_copy((json_t *)(uintptr_t)ask->data)
                                     : json_loads(version->source->sample_json, 0, NULL);
    if (json_is_object(data)) {
        return data;
    }
    json_decref(data);
    return json_object();
}

static void surround(json_t *data, const CompiledLocale *locale, const PreviewAsk *ask)
{
    const Stentor__V1__Tenant *tenant = ask->tenant;
    json_t *theme = tenant != NULL ? tenant_theme(tenant) : NULL;
    json_t *names = tenant != NULL ? tenant_names(tenant) : NULL;
    add_surroundings(data, locale, theme, names);
    json_decref(theme);
    json_decref(names);
}

static json_t *describe(
    const CompiledVersion *version, const CompiledLocale *locale, Draft *draft, json_t *warnings)
{
    json_t *answer = json_pack(
        "{s:s,s:s,s:s,s:o,s:O}", "channel", channel_name(version->channel), "locale",
        locale->locale, "direction", locale->direction, "parts", parts_of(version, draft),
        "warnings", warnings);
    if (version->channel == CHANNEL_SMS) {
        (void)json_object_set_new(
            answer, "sms",
            json_pack(
                "{s:i,s:i,s:s}", "segments", (int)draft->sms.segments, "units",
                (int)draft->sms.units, "alphabet", draft->sms.ucs2 ? "UCS-2" : "GSM-7"));
    }
    return answer;
}

static void warn_of_all(
    const CompiledVersion *version, const CompiledLocale *locale, Str wanted, const Draft *draft,
    json_t *warnings)
{
    if (wanted.len > 0 && !str_eq_nocase(wanted, str_from(locale->locale))) {
        warn(warnings, "locale: the requested one does not exist; another was used");
    }
    if (version->channel == CHANNEL_EMAIL) {
        warn_of_mail(locale, draft, warnings);
    }
    if (version->channel == CHANNEL_SMS) {
        warn_of_sms(draft, warnings);
    }
}

bool preview_data_fits(const json_t *data, Error *err)
{
    size_t size = json_dumpb(data, NULL, 0, JSON_COMPACT);
    return size <= PREVIEW_DATA_MAX ||
           error_set(
               err, ERROR_PERMANENT, "%zu bytes of JSON, at most %d are allowed", size,
               PREVIEW_DATA_MAX);
}

bool preview(
    const CompiledVersion *version, const PreviewAsk *ask, json_t **ret, RenderFailure *failure)
{
    Str wanted = ask->locale;
    if (wanted.len == 0 && ask->tenant != NULL) {
        wanted = str_from(ask->tenant->default_locale);
    }
    const CompiledLocale *locale = version_locale(version, wanted);
    json_t *data = data_of(version, ask);
    TemplateMeter meter = {.cpu_us = ask->cpu_us, .max_us = ask->cpu_max_us};
    ContentContext context = {
        .meter = &meter,
        .zone = ask->tenant != NULL ? str_from(ask->tenant->time_zone) : STR_EMPTY,
        .tools = template_tools_new(),
        .assets = ask->assets,
    };
    Draft draft;
    draft_init(&draft);
    json_t *warnings = json_array();
    bool ok = check_variables(version->source, data, failure);
    if (ok) {
        surround(data, locale, ask);
        ok = render_content(version, locale, data, &context, &draft, failure);
    }
    if (ok) {
        if (meter.unsafe_urls > 0) {
            warn(
                warnings,
                "html: " TEMPLATE_UNSAFE_URL " replaces a value that made a URL other than "
                "http, https, mailto, tel, cid or relative");
        }
        warn_of_missing(version, locale, data, &context, warnings);
        warn_of_all(version, locale, wanted, &draft, warnings);
        *ret = describe(version, locale, &draft, warnings);
    }
    json_decref(warnings);
    json_decref(data);
    draft_done(&draft);
    template_tools_free(context.tools);
    return ok;
}
