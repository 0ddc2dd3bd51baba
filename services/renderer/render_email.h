// SPDX-License-Identifier: Apache-2.0
// One e-mail's words from its template version and variables. Pure: no I/O, no clock, no keys.
// What stands in its way is a RenderFailure: a stable code for machines and a reason for a person,
// free of personal data.
#pragma once

#include "services/renderer/template_cache.h"

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

// The rendered parts; reused from one mail to the next, so that rendering allocates nothing.
typedef struct EmailDraft {
    Buf subject; // without control characters
    Buf html;    // empty: none
    Buf text;    // empty: none
} EmailDraft;

void email_draft_init(EmailDraft *draft);
void email_draft_done(EmailDraft *draft);

// Parses the variables' JSON (empty: no variables); *ret_json is the caller's.
bool parse_variables(Str text, json_t **ret_json, RenderFailure *failure);
// Required ones are there (null is not), and each is of its declared type.
bool check_variables(
    const Stentor__V1__TemplateVersion *version, const json_t *variables, RenderFailure *failure);
bool render_email(
    const CompiledLocale *locale, const json_t *variables, EmailDraft *draft,
    RenderFailure *failure);
