// SPDX-License-Identifier: Apache-2.0
// A text read as a file of records, and what came of it.
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "services/cli/import/record_file.h"

enum { OUT_MAX = 64 * 1024 * 1024 };

typedef struct Tally {
    size_t lines;
    size_t broken;
    size_t broken_line; // the first
    RecordRead end;
    Error error; // the last
} Tally;

static inline Tally read_all(const RecordKind *kind, bool csv, Str text, Buf *out)
{
    Tally tally = {0};
    RecordFile file;
    FILE *stream = tmpfile();
    assert_non_null(stream);
    assert_int_equal(fwrite(text.ptr, 1, text.len, stream), text.len);
    rewind(stream);
    record_file_init(&file, kind, stream, csv);
    do {
        tally.end = record_file_next_line(&file, out, &tally.error);
        tally.lines += tally.end == RECORD_READ;
        if (tally.end == RECORD_BROKEN && tally.broken++ == 0) {
            tally.broken_line = file.line;
        }
    } while (tally.end == RECORD_READ || tally.end == RECORD_BROKEN);
    if (tally.end == RECORD_END) {
        assert_int_equal(file.bytes, text.len);
    }
    record_file_close(&file);
    return tally;
}

// `out` is begun here, and the caller's to end.
static inline Tally read_text(const RecordKind *kind, bool csv, const char *text, Buf *out)
{
    buf_init(out, OUT_MAX);
    return read_all(kind, csv, str_from(text), out);
}
