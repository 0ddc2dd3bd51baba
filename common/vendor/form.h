// SPDX-License-Identifier: Apache-2.0
// Forms, application/x-www-form-urlencoded: written into requests, read out of callbacks. Pure.
#pragma once

#include "common/base/buf.h"
#include "common/vendor/vendor_api.h"

enum { FORM_BYTES_MAX = 65536, FORM_FIELDS_MAX = 64 };

// Appends "&name=value"; `name` is written as it is.
void form_put(Buf *form, const char *name, Str value);
// The body of the request, and its Content-Type.
void form_set(VendorRequest *request, const Buf *form, Arena *arena);

// The fields decoded, in their order, in the arena. false: more than FORM_FIELDS_MAX, a field
// without '=' or with a broken %XX.
bool form_read(Str body, Arena *arena, VendorPair ret[FORM_FIELDS_MAX], size_t *ret_count);
// The first of that name; empty: there is none.
Str form_value(const VendorPair *fields, size_t count, const char *name);
