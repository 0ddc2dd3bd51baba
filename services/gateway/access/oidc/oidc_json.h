// SPDX-License-Identifier: Apache-2.0
// JSON of an OpenID provider: one object, and its members that are text. Pure.
#pragma once

#include <jansson.h>

#include "common/base/str.h"

// A new reference; NULL: it is no UTF-8, no JSON, no object, or has a member twice.
json_t *oidc_object(Str text);
// Borrowed; empty: it is not there, or no text.
Str oidc_member(const json_t *object, const char *name);
