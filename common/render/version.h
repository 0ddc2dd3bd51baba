// SPDX-License-Identifier: Apache-2.0
// A template version, compiled: every part of every locale as a template, ready to render. Shared
// by the renderer, the preview of the API and the command line. Pure.
#pragma once

#include "common/codec/body.h"
#include "common/model/enums.h"
#include "common/template/template.h"

enum {
    VERSION_LOCALES_MAX = 200,
    VERSION_VARIABLES_MAX = 500,
    VERSION_PARAMETERS_MAX = 32,
    VERSION_FALLBACKS_MAX = 16,
};

// NULL: the locale has no such part.
typedef struct CompiledLocale {
    const char *locale;
    const char *direction; // "ltr" or "rtl"
    Template *subject;     // not escaped
    Template *preheader;   // escaped
    Template *html;        // escaped
    Template *text;        // not escaped: of a mail, an SMS, a push, a voice script, in-app
    Template *title;       // not escaped
    Template *data;        // a JSON object; {{x}} is escaped for its strings
    const char *reference; // WhatsApp: the vendor's template; "" : none
    Template *parameters[VERSION_PARAMETERS_MAX];
    size_t parameter_count;
} CompiledLocale;

typedef struct CompiledVersion {
    const Stentor__V1__TemplateVersion *source;
    Channel channel; // email when the version names none
    BodyPrefix *prefix;
    CompiledLocale *locales; // at least one, unless broken
    size_t locale_count;
    Error broken; // kind ERROR_NONE: fine; else why it cannot be used
    // owned
    Arena *arena;
    TemplateSet *html_partials;
    TemplateSet *text_partials;
} CompiledVersion;

// Never NULL: one that does not compile says why in `broken`.
CompiledVersion *version_compile(Str packed);
void version_free(CompiledVersion *version); // NULL-safe

// The locale as it is, else another of the same language, else the first of the version's
// fallback_locales that it has, else the version's first.
const CompiledLocale *version_locale(const CompiledVersion *version, Str wanted);
