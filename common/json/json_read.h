// SPDX-License-Identifier: Apache-2.0
// JSON text to values, fast for what nearly all text is. What this reader is not sure of (a fault,
// a NUL, an integer of more than 18 digits, too many values) it leaves to jansson, whose verdict,
// words and values count: so both give the same for every text (json_read_fuzz).
#pragma once

#include <jansson.h>

#include "common/base/str.h"

// As json_loadb(text, flags, ret_error), with JSON_DECODE_ANY and JSON_REJECT_DUPLICATES.
// ret_error may be NULL.
json_t *json_read(Str text, size_t flags, json_error_t *ret_error);

// The same without jansson's help, and nothing of more than JSON_VALUES_MAX values or deeper than
// JSON_DEPTH_MAX (common/base/json_scan.h). NULL: not sure.
json_t *json_read_plain(Str text, size_t flags);
