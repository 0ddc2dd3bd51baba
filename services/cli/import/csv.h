// SPDX-License-Identifier: Apache-2.0
// CSV as RFC 4180 says: fields separated by commas, those with a comma, a quote or a line break in
// quotes, a quote in them doubled; lines end with LF or CRLF. Pure and without state: one record
// out of a window of the file. Law: a broken record costs its first line only, so a quote that
// is not closed does not swallow what follows.
#pragma once

#include "common/base/arena.h"

enum { CSV_RECORD_MAX = 64 * 1024, CSV_FIELDS_MAX = 64 };

typedef enum CsvVerdict {
    CSV_MORE,   // the record does not end within the window: read on (never at the file's end)
    CSV_END,    // nothing left
    CSV_RECORD, // fields
    CSV_BROKEN, // reason
} CsvVerdict;

typedef struct CsvRecord {
    Str fields[CSV_FIELDS_MAX]; // in the arena
    size_t count;
    size_t bytes;       // to drop from the window, line break included
    size_t lines;       // that they were
    const char *reason; // static
} CsvRecord;

// at_end: nothing comes after the window. A blank line is a record without fields.
CsvVerdict csv_read(Str window, bool at_end, Arena *arena, CsvRecord *ret);
