// SPDX-License-Identifier: Apache-2.0
// The definitions of vendors by definition ("sms-acme"), out of the credentials of CONFIG: how they
// sign what they call back, and what it means. The tenant's active credential counts, then the
// platform's. Compiled when first asked for.
#pragma once

#include "common/vendor/generic/definition.h"

typedef struct Definitions Definitions;

Definitions *definitions_new(void);
void definitions_free(Definitions *definitions);
// An entry cfg.credential.<tenant>.<key>; those of vendors that the code knows change nothing.
bool definitions_changed(Definitions *definitions, Str tenant, Str key, Str payload, Error *err);
// NULL: the tenant has no such vendor. Valid until the loop turns.
const VendorDefinition *definitions_find(Definitions *definitions, Str tenant, Str vendor);
