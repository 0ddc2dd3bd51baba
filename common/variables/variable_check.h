// SPDX-License-Identifier: Apache-2.0
// A variable's value against the rule that the template version has for it. Pure. A fault names the
// path and the rule, never the value.
#pragma once

#include <jansson.h>

#include "common/base/arena.h"
#include "stentor/v1/config.pb-c.h"

enum {
    VARIABLE_DEPTH_MAX = 8,                               // rules inside of rules
    VARIABLE_ENUM_BYTES_MAX = 128,                        // of one allowed value as JSON
    VARIABLE_ENUM_FLAGS = JSON_ENCODE_ANY | JSON_COMPACT, // of its text
};

typedef enum VariableFaultKind {
    VARIABLE_FINE,
    VARIABLE_MISSING, // a required member of an object
    VARIABLE_TYPE,
    VARIABLE_VALUE, // its format, enumeration or bounds
} VariableFaultKind;

typedef struct VariableFault {
    VariableFaultKind kind;
    char path[160]; // "order.lines[2].email"
    char text[120]; // "must be of format email"
} VariableFault;

// `value` is there and not null. false: *ret says what is wrong first. arena: for formats; may be
// NULL where the rule has neither a format nor rules inside.
bool variable_check(
    const Stentor__V1__TemplateVariable *rule, const json_t *value, Arena *arena,
    VariableFault *ret);
const char *variable_type_name(const json_t *value); // "string" ...; "null"
