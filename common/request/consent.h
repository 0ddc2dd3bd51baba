// SPDX-License-Identifier: Apache-2.0
// The caller's word on consent: where and when the owner of an address that no recipient has agreed
// to marketing. As JSON {"source", "given_at"}; its fields are "consent.source" and
// "consent.given_at". Pure.
#pragma once

#include <jansson.h>

#include "common/request/request.h"

enum { CONSENT_SOURCE_MAX = 200 };

// A JSON object with a source at least; consent_check judges the rest. What it makes lives in
// `arena`.
bool consent_read(
    const json_t *value, Arena *arena, Str *ret_source, int64_t *ret_at_us, FieldError *err);
// Both or neither, one line, no time ahead of ours by more than a minute.
bool consent_check(Str source, int64_t at_us, int64_t now_us, FieldError *err);
