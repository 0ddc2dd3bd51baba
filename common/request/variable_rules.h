// SPDX-License-Identifier: Apache-2.0
// The rules of a template version's variables: packed until they are asked for, so that a version
// that is not used costs their bytes and no more.
// The renderer fails a notification that breaks one; with this a caller learns of it before the
// notification is accepted. Pure.
#pragma once

#include <jansson.h>

#include "common/request/request.h"
#include "stentor/v1/config.pb-c.h"

typedef struct VariableRules VariableRules; // on the heap

VariableRules *variable_rules_pack(const Stentor__V1__TemplateVersion *version); // NULL: none
void variable_rules_free(VariableRules *rules);                                  // NULL-safe

// The next variable at or behind *at (0 at first) that is there and breaks its rule: false, and
// *ret_field names it as "variables.order.lines[0].email", *ret_text says why; both live in
// `arena`. What is missing at the top is required.h's. rules and variables may be NULL.
bool variable_rules_hold(
    VariableRules *rules, const json_t *variables, size_t *at, Arena *arena, const char **ret_field,
    const char **ret_text);
