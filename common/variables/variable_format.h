// SPDX-License-Identifier: Apache-2.0
// Formats of texts, as JSON Schema names them. Pure.
#pragma once

#include "common/base/arena.h"

// "email uri date time date-time uuid"
extern const char VARIABLE_FORMATS[];

bool variable_format_is(Str name);
// A format that this release does not know is met by every text.
bool variable_format_met(Str name, Str text, Arena *arena);
