// SPDX-License-Identifier: Apache-2.0
#include "common/render/version.h"

#include <stdlib.h>

#include "common/codec/event.h"
#include "common/template/helpers/format.h"

static void free_locale(CompiledLocale *locale)
{
    template_free(locale->subject);
    template_free(locale->preheader);
    template_free(locale->html);
    template_free(locale->text);
    template_free(locale->title);
    template_free(locale->data);
    for (size_t i = 0; i < locale->parameter_count; i++) {
        template_free(locale->parameters[i]);
    }
}

void version_free(CompiledVersion *version)
{
    if (version == NULL) {
        return;
    }
    for (size_t i = 0; i < version->locale_count; i++) {
        free_locale(&version->locales[i]);
    }
    template_set_free(version->html_partials);
    template_set_free(version->text_partials);
    body_prefix_free(version->prefix);
    arena_free(version->arena);
    free(version);
}

static bool compile_partials(CompiledVersion *version, Error *err)
{
    const Stentor__V1__TemplateVersion *source = version->source;
    version->html_partials = template_set_new();
    version->text_partials = template_set_new();
    for (size_t i = 0; i < source->n_partials; i++) {
        Str name = str_from(source->partials[i]->name);
        Str words = str_from(source->partials[i]->source);
        if (!template_set_add(version->html_partials, name, words, TEMPLATE_ESCAPE_HTML, err) ||
            !template_set_add(version->text_partials, name, words, TEMPLATE_ESCAPE_NONE, err)) {
            return false;
        }
    }
    return true;
}

// ---- one locale ----

typedef struct Part {
    const char *name;
    const char *source;
    TemplateEscape escape;
    Template **ret;
} Part;

// An empty source gives no template. Parts of JSON have no partials: theirs are not escaped for it.
static bool compile_part(const CompiledVersion *version, const Part *part, Error *err)
{
    if (part->source[0] == '\0') {
        return true;
    }
    const TemplateSet *set = part->escape == TEMPLATE_ESCAPE_HTML   ? version->html_partials
                             : part->escape == TEMPLATE_ESCAPE_NONE ? version->text_partials
                                                                    : NULL;
    *part->ret = template_compile(str_from(part->source), part->escape, set, err);
    return *part->ret != NULL || error_wrap(err, "%s", part->name);
}

static bool has(const char *text)
{
    return text[0] != '\0';
}

// Has the locale what its channel needs?
static bool check_parts(Channel channel, const Stentor__V1__LocaleVariant *variant, Error *err)
{
    const char *missing = NULL;
    switch (channel) {
    case CHANNEL_EMAIL:
        missing = has(variant->html) || has(variant->text) ? NULL : "neither html nor text";
        break;
    case CHANNEL_SMS:
    case CHANNEL_VOICE:
        missing = has(variant->text) ? NULL : "no text";
        break;
    case CHANNEL_PUSH:
    case CHANNEL_INAPP:
        missing = has(variant->title) || has(variant->text) ? NULL : "neither title nor text";
        break;
    case CHANNEL_WHATSAPP:
        missing =
            has(variant->reference) || has(variant->text) ? NULL : "neither reference nor text";
        break;
    case CHANNEL_WEBHOOK:
        missing = has(variant->text) || has(variant->data) ? NULL : "neither text nor data";
        break;
    case CHANNEL_NONE:
    case CHANNEL_COUNT:
        missing = "a channel that has no templates";
        break;
    }
    return missing == NULL ||
           error_set(err, ERROR_PERMANENT, "locale '%.40s' has %s", variant->locale, missing);
}

static const char *direction_of(const Stentor__V1__LocaleVariant *variant)
{
    if (has(variant->direction)) {
        return str_eq(str_from(variant->direction), STR("rtl")) ? "rtl" : "ltr";
    }
    return format_is_rtl(str_from(variant->locale)) ? "rtl" : "ltr";
}

static bool compile_parameters(
    const CompiledVersion *version, const Stentor__V1__LocaleVariant *variant,
    CompiledLocale *locale, Error *err)
{
    if (variant->n_parameters > VERSION_PARAMETERS_MAX) {
        return error_set(
            err, ERROR_PERMANENT, "it has %zu parameters, at most %d are allowed",
            variant->n_parameters, VERSION_PARAMETERS_MAX);
    }
    for (size_t i = 0; i < variant->n_parameters; i++) {
        Str source = str_from(variant->parameters[i]);
        Template *compiled =
            template_compile(source, TEMPLATE_ESCAPE_NONE, version->text_partials, err);
        if (compiled == NULL) {
            return error_wrap(err, "parameter %zu", i + 1);
        }
        locale->parameters[locale->parameter_count++] = compiled;
    }
    return true;
}

static bool compile_locale(
    const CompiledVersion *version, const Stentor__V1__LocaleVariant *variant,
    CompiledLocale *locale, Error *err)
{
    const Part parts[] = {
        {"subject", variant->subject, TEMPLATE_ESCAPE_NONE, &locale->subject},
        {"preheader", variant->preheader, TEMPLATE_ESCAPE_HTML, &locale->preheader},
        {"html", variant->html, TEMPLATE_ESCAPE_HTML, &locale->html},
        {"text", variant->text, TEMPLATE_ESCAPE_NONE, &locale->text},
        {"title", variant->title, TEMPLATE_ESCAPE_NONE, &locale->title},
        {"data", variant->data, TEMPLATE_ESCAPE_JSON, &locale->data},
    };
    locale->locale = variant->locale;
    locale->direction = direction_of(variant);
    locale->reference = variant->reference;
    if (!check_parts(version->channel, variant, err)) {
        return false;
    }
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (!compile_part(version, &parts[i], err)) {
            return error_wrap(err, "locale '%.40s'", variant->locale);
        }
    }
    return compile_parameters(version, variant, locale, err) ||
           error_wrap(err, "locale '%.40s'", variant->locale);
}

// ---- the version ----

static bool check_version(const Stentor__V1__TemplateVersion *source, Error *err)
{
    if (source->n_locales == 0 || source->n_locales > VERSION_LOCALES_MAX) {
        return error_set(
            err, ERROR_PERMANENT, "it has %zu locales, 1 to %d are allowed", source->n_locales,
            VERSION_LOCALES_MAX);
    }
    if (source->n_variables > VERSION_VARIABLES_MAX) {
        return error_set(
            err, ERROR_PERMANENT, "it has %zu variables, at most %d are allowed",
            source->n_variables, VERSION_VARIABLES_MAX);
    }
    if (source->n_fallback_locales > VERSION_FALLBACKS_MAX) {
        return error_set(
            err, ERROR_PERMANENT, "it has %zu fallback locales, at most %d are allowed",
            source->n_fallback_locales, VERSION_FALLBACKS_MAX);
    }
    return true;
}

static bool compile_locales(CompiledVersion *version, Error *err)
{
    const Stentor__V1__TemplateVersion *source = version->source;
    version->locales = arena_array(version->arena, source->n_locales, sizeof(CompiledLocale));
    for (size_t i = 0; i < source->n_locales; i++) {
        version->locale_count = i + 1;
        if (!compile_locale(version, source->locales[i], &version->locales[i], err)) {
            return false;
        }
    }
    return true;
}

CompiledVersion *version_compile(Str packed)
{
    CompiledVersion *version = xcalloc(1, sizeof *version);
    Error *err = &version->broken;
    version->arena = arena_new(0);
    version->source = (const Stentor__V1__TemplateVersion *)event_unpack(
        &stentor__v1__template_version__descriptor, packed, version->arena, err);
    if (version->source == NULL) {
        return version;
    }
    version->channel = (Channel)version->source->channel;
    if (version->channel == CHANNEL_NONE) {
        version->channel = CHANNEL_EMAIL;
    }
    version->prefix = body_prefix_new(version->source);
    if (check_version(version->source, err) && compile_partials(version, err)) {
        (void)compile_locales(version, err);
    }
    return version;
}

// ---- locales ----

// "en" of "en-US" and of "en_US".
static Str language(Str locale)
{
    size_t len = 0;
    while (len < locale.len && locale.ptr[len] != '-' && locale.ptr[len] != '_') {
        len++;
    }
    return str_slice(locale, 0, len);
}

static const CompiledLocale *find_exact(const CompiledVersion *version, Str wanted)
{
    for (size_t i = 0; i < version->locale_count; i++) {
        if (str_eq_nocase(str_from(version->locales[i].locale), wanted)) {
            return &version->locales[i];
        }
    }
    return NULL;
}

// The plain language ("en") before its regions ("en-GB").
static const CompiledLocale *find_related(const CompiledVersion *version, Str wanted)
{
    const CompiledLocale *plain = find_exact(version, language(wanted));
    for (size_t i = 0; i < version->locale_count && plain == NULL; i++) {
        if (str_eq_nocase(language(str_from(version->locales[i].locale)), language(wanted))) {
            plain = &version->locales[i];
        }
    }
    return plain;
}

const CompiledLocale *version_locale(const CompiledVersion *version, Str wanted)
{
    const Stentor__V1__TemplateVersion *source = version->source;
    const CompiledLocale *found = find_exact(version, wanted);
    found = found != NULL || wanted.len == 0 ? found : find_related(version, wanted);
    for (size_t i = 0; source != NULL && found == NULL && i < source->n_fallback_locales; i++) {
        found = find_exact(version, str_from(source->fallback_locales[i]));
    }
    return found != NULL ? found : &version->locales[0];
}
