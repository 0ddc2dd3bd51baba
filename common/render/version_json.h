// SPDX-License-Identifier: Apache-2.0
// A template version as a JSON document, as the API and `stentor template put --from` take it and
// show it. Pure. Its fields: README.md of this folder.
#pragma once

#include <jansson.h>

#include "common/render/version.h"

enum { VERSION_TEXT_MAX = TEMPLATE_SOURCE_MAX, VERSION_SAMPLE_MAX = 64 * 1024 };

enum { FIELD_FAULTS_MAX = 32 };

// What is wrong with a document: the field ("locales[1].html") and why.
typedef struct FieldFault {
    char field[160];
    char detail[200];
} FieldFault;

// All that is wrong, in the order in which it was met; those beyond the last place are not kept.
typedef struct FieldFaults {
    FieldFault items[FIELD_FAULTS_MAX];
    size_t count;
} FieldFaults;

// *ret's strings live in `arena`; tenant, status and the publisher are the caller's to set. false:
// *faults says which fields are not right; an unknown field is one. What is right is in *ret then
// too.
bool version_from_json(
    const json_t *document, Arena *arena, Stentor__V1__TemplateVersion *ret, FieldFaults *faults);

// The whole document, or (brief) all but its content. New reference.
json_t *version_to_json(const Stentor__V1__TemplateVersion *version, bool brief);

const char *version_status_name(
    Stentor__V1__TemplateStatus status); // "draft", "active", "archived"

// May the version become (or be published as) `status`? An ai_drafted one is active only with an
// approver; draft -> active -> archived and no way back. ERROR_PERMANENT says why not.
bool version_may_become(
    const Stentor__V1__TemplateVersion *version, Stentor__V1__TemplateStatus status, Error *err);

// Does it compile, and is it whole? ERROR_PERMANENT with locale, part, line and column.
bool version_check(const Stentor__V1__TemplateVersion *version, Error *err);
