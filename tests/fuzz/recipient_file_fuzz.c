// SPDX-License-Identifier: Apache-2.0
// links: svc_cli
// CSV and NDJSON files of `stentor recipient import`.
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "services/cli/import/recipient_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_all(const uint8_t *data, size_t size, bool csv)
{
    FILE *stream = fmemopen((void *)(uintptr_t)data, size, "rb");
    if (stream == NULL) {
        return;
    }
    RecipientFile file;
    Buf out;
    size_t before = 0;
    recipient_file_init(&file, stream, csv);
    buf_init(&out, 64 * 1024 * 1024);
    for (;;) {
        Error err = {0};
        RecipientRead got = recipient_file_next(&file, &out, &err);
        assert(file.line >= before);
        before = file.line;
        if (got == RECIPIENT_LINE) {
            assert(out.len > 0 && out.ptr[out.len - 1] == '\n');
            assert(memchr(out.ptr, '\n', out.len - 1) == NULL);
            buf_clear(&out);
        } else if (got == RECIPIENT_BROKEN) {
            assert(err.text[0] != '\0');
        } else {
            assert(got == RECIPIENT_END || err.text[0] != '\0');
            assert(got != RECIPIENT_END || (size_t)file.bytes == size);
            break;
        }
    }
    buf_done(&out);
    recipient_file_done(&file);
    fclose(stream);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_all(data, size, true);
    read_all(data, size, false);
    return 0;
}
