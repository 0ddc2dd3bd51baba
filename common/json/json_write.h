// SPDX-License-Identifier: Apache-2.0
// JSON values to text: the same bytes as jansson's, but copied in runs.
#pragma once

#include <jansson.h>

#include "common/base/arena.h"
#include "common/base/buf.h"

// 15 digits, because with jansson's 17 a 19.99 would come out as 19.989999999999998.
#define JSON_DECIMALS JSON_REAL_PRECISION(15)

// As json_dumpb(value, JSON_COMPACT | JSON_ENCODE_ANY | flags) gives it, but for real numbers
// from 1e308 on, which have all their digits: what is written can be read again. flags: JSON_SORT_KEYS,
// JSON_REAL_PRECISION(). false: the Buf is full, or the value cannot be written (NULL, a string
// that is not UTF-8, a circle).
bool json_write(const json_t *value, size_t flags, Buf *out);

// The same in `arena`; "" when it cannot be written.
Str json_text(const json_t *value, size_t flags, Arena *arena);
