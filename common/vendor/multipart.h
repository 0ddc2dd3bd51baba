// SPDX-License-Identifier: Apache-2.0
// A form as multipart/form-data (RFC 7578), made whole in memory. The boundary is the SHA-256 of
// what stands between, tried against it, so that the same form has the same bytes and no content
// can end a part.
#pragma once

#include "common/vendor/vendor_api.h"

typedef struct MultipartField {
    Str name, value;
    Str filename, type; // of a file; empty: a plain field
} MultipartField;

// The request gets the body and a Content-Type. Names, filenames and types are our own words.
void multipart_set(
    VendorRequest *request, const MultipartField *fields, size_t count, Arena *arena);
