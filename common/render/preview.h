// SPDX-License-Identifier: Apache-2.0
// What a version would send: its parts, how large they are, and what an author
// should know before publishing it. Pure.
#pragma once

#include "common/render/content.h"

typedef struct PreviewAsk {
    Str locale;                        // empty: the tenant's default, else the version's first
    const json_t *data;                // NULL: the version's sample
    const Stentor__V1__Tenant *tenant; // its theme, name, zone and default locale; NULL: none
    const TemplateAssets *assets;      // NULL: none
    int64_t (*cpu_us)(void);           // that this thread has used; NULL: no limit of time
    int64_t cpu_max_us;
} PreviewAsk;

enum { PREVIEW_DATA_MAX = 64 * 1024 }; // bytes of JSON, as of a notification's variables
// Is the data as small as that? ERROR_PERMANENT says how large it is.
bool preview_data_fits(const json_t *data, Error *err);

// {"channel", "locale", "direction", "parts": {...}, "sms": {"segments", "units", "alphabet"},
// "warnings": [...]}; *ret is a new reference. false: the version does not render with this data.
bool preview(
    const CompiledVersion *version, const PreviewAsk *ask, json_t **ret, RenderFailure *failure);
