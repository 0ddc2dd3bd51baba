// SPDX-License-Identifier: Apache-2.0
// links: stentor_keywork
// Any bytes as a dump of keys: read whole, or refused as damaged; what a reader is given stays within
// the format's bounds.
#include <stdlib.h>

#include "common/keywork/keys_dump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static bool on_table(void *ctx, Str name, Str columns, Error *err)
{
    (void)ctx;
    (void)err;
    require(name.len > 0 && columns.len > 0);
    for (size_t i = 0; i < columns.len; i++) {
        char c = columns.ptr[i];
        require((c >= 'a' && c <= 'z') || c == '_' || c == ',');
    }
    return true;
}

static bool on_piece(void *ctx, Str bytes, Error *err)
{
    size_t *left = ctx;
    (void)err;
    require(bytes.len > 0 && bytes.len <= *left);
    *left -= bytes.len;
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t left = size;
    Error err = {0};
    KeysDump dump;
    FILE *file = size > 0 ? fmemopen((void *)(uintptr_t)data, size, "rb") : NULL;
    if (file == NULL) {
        return 0;
    }
    const KeysDumpReader reader = {.table = on_table, .piece = on_piece, .ctx = &left};
    if (!keys_dump_read(file, &reader, &dump, &err)) {
        require(err.kind == ERROR_PERMANENT);
    } else {
        require(dump.taken_us >= 0);
    }
    require(fclose(file) == 0);
    return 0;
}
