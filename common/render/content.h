// SPDX-License-Identifier: Apache-2.0
// A notification's content from its template version and variables, for every channel. Pure: no
// I/O, no clock, no keys; locale and zone are arguments. What stands in the way is a RenderFailure:
// a stable code for machines and a reason for an operator, free of personal data.
#pragma once

#include "common/model/sms.h"
#include "common/render/version.h"

typedef enum FailureCode {
    FAILURE_NONE,
    FAILURE_EXPIRED,
    FAILURE_UNSUPPORTED_CHANNEL,
    FAILURE_RECIPIENT_ERASED,
    FAILURE_UNKNOWN_TEMPLATE,
    FAILURE_INVALID_TEMPLATE,
    FAILURE_INVALID_VARIABLES,
    FAILURE_MISSING_VARIABLE,
    FAILURE_WRONG_VARIABLE_TYPE,
    FAILURE_RENDER,
    FAILURE_LIMIT, // the template takes more steps, rounds or time than it may
    FAILURE_COUNT,
} FailureCode;

typedef struct RenderFailure {
    FailureCode code;
    char reason[300];
} RenderFailure;

// The reason_code of the status event and the label of the metric.
const char *failure_code_name(FailureCode code);
// Fills *failure; returns false.
bool render_fail(RenderFailure *failure, FailureCode code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

enum { SMS_SEGMENTS_MAX = 10 };

// The rendered parts; reused from one notification to the next, so that rendering allocates
// nothing. A part that the channel or the locale does not have is empty.
typedef struct Draft {
    Buf subject; // without control characters
    Buf html;    // with the preheader as its first, hidden element
    Buf text;    // of a mail without one: made from the html; else an SMS, a body, a script
    Buf title;   // without control characters
    Buf data;    // a JSON object
    const char *reference;
    Buf parameters; // one behind the other, each with a NUL
    size_t parameter_count;
    SmsSize sms; // of CHANNEL_SMS
} Draft;

void draft_init(Draft *draft);
void draft_done(Draft *draft);

// Parses the variables' JSON (empty: no variables); *ret_json is the caller's.
bool parse_variables(Str text, json_t **ret_json, RenderFailure *failure);
// Required ones are there (null is not), and each is of its declared type.
bool check_variables(
    const Stentor__V1__TemplateVersion *version, const json_t *variables, RenderFailure *failure);
// Adds what every template may use, unless the caller gave it: {{locale}}, {{direction}}, and
// {{theme...}}, {{tenant.name}} where those are not NULL.
void add_surroundings(
    json_t *variables, const CompiledLocale *locale, json_t *theme, json_t *tenant);

// The tenant's {{theme...}} and {{tenant.name}}; new references.
json_t *tenant_theme(const Stentor__V1__Tenant *tenant);
json_t *tenant_names(const Stentor__V1__Tenant *tenant);

typedef struct ContentContext {
    Str zone;             // IANA; empty: UTC
    TemplateTools *tools; // kept between renders
    bool strict;
    TemplateMeter *meter;         // NULL: none; else of this notification alone
    const TemplateAssets *assets; // NULL: none
    bool as_written;              // values show as their tags (template.h)
} ContentContext;

// Formats are those of `locale`, the content's own.
bool render_content(
    const CompiledVersion *version, const CompiledLocale *locale, const json_t *variables,
    const ContentContext *context, Draft *draft, RenderFailure *failure);
// What a list may show of the notification, in *line: a mail's subject, else a title. false: it has
// neither, or it cannot be rendered.
bool render_subject_line(
    const CompiledLocale *locale, const json_t *variables, const ContentContext *context,
    Buf *line);
