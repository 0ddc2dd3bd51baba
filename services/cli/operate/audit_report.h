// SPDX-License-Identifier: Apache-2.0
// An audit as text and as JSON: the counts, and what is lost, doubled or unknown by
// name.
#pragma once

#include <jansson.h>

#include "common/audit/audit.h"

// The counts and the findings (at most options.limit of them, and the total). The caller owns
// it.
json_t *audit_report(const Audit *audit);
void audit_print(const json_t *report);
