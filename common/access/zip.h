// SPDX-License-Identifier: Apache-2.0
// A ZIP archive of small files, stored without compression (APPNOTE 6.3.3, version 1.0). Pure.
#pragma once

#include "common/base/buf.h"

enum { ZIP_FILES_MAX = 32, ZIP_NAME_MAX = 64 };

typedef struct Zip {
    Buf *out;
    struct {
        char name[ZIP_NAME_MAX];
        uint32_t crc, bytes, offset;
    } files[ZIP_FILES_MAX];
    size_t count;
} Zip;

// All are written to `out`, whose maximum is below 4 GiB; what does not fit shows in its `full`.
void zip_begin(Zip *zip, Buf *out);
void zip_add(Zip *zip, const char *name, Str content); // at most ZIP_FILES_MAX
void zip_end(Zip *zip);
