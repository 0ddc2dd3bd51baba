// SPDX-License-Identifier: Apache-2.0
// A length of time as an operator writes it: "90s", "15m", "2h", "7d". Pure.
#pragma once

#include "common/base/str.h"

// Whole and not negative, at most 3650 days.
bool span_parse(Str text, int64_t *ret_us);
