// SPDX-License-Identifier: Apache-2.0
// How much memory a JSON text would take once parsed, before it is: a parser makes some 200 bytes
// of memory out of the two of "{}". Not a validator. Pure, one pass, no memory.
#pragma once

#include "common/base/str.h"

enum { JSON_VALUES_MAX = 100 * 1000, JSON_DEPTH_MAX = 128 };

// What stands too deep or is too much: where.
typedef struct JsonExcess {
    const char *what; // "more than 100000 values"
    int line, column; // from 1
} JsonExcess;

// false: more than JSON_VALUES_MAX values, or nested deeper than JSON_DEPTH_MAX.
bool json_is_modest(Str text, JsonExcess *ret_excess);
