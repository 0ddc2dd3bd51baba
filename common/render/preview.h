// SPDX-License-Identifier: Apache-2.0
// What a version would say: its parts as they would be sent, how large they are, and what a person
// should know before publishing it. Pure.
#pragma once

#include "common/render/words.h"

typedef struct PreviewAsk {
    Str locale;                        // empty: the tenant's default, else the version's first
    const json_t *data;                // NULL: the version's sample
    const Stentor__V1__Tenant *tenant; // its theme, name, zone and default locale; NULL: none
} PreviewAsk;

// {"channel", "locale", "direction", "parts": {...}, "sms": {"segments", "units", "alphabet"},
// "warnings": [...]}; *ret is a new reference. false: the version does not render with this data.
bool preview(
    const CompiledVersion *version, const PreviewAsk *ask, json_t **ret, RenderFailure *failure);
