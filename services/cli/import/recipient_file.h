// SPDX-License-Identifier: Apache-2.0
// A file of people, CSV or NDJSON, read in a window of bounded size: one person at a time as a line
// of POST /v1/recipients/import.
#pragma once

#include <stdio.h>

#include "common/base/buf.h"
#include "common/base/error.h"
#include "services/cli/import/recipient_row.h"

typedef struct RecipientFile {
    FILE *file;
    bool csv;
    bool at_end;
    bool skipping; // the rest of a line that was too long
    bool has_columns;
    size_t line; // of what was read last, from 1
    size_t next_line;
    int64_t bytes; // read and used up
    Buf window;
    size_t used; // of the window; dropped when more is read, not line by line
    RowColumns columns;
    Arena *arena;
} RecipientFile;

typedef enum RecipientRead {
    RECIPIENT_END,
    RECIPIENT_LINE,   // one line was appended to `out`
    RECIPIENT_BROKEN, // err says what; file->line where; the rest can be read
    RECIPIENT_FAILED, // err: nothing more can be read
} RecipientRead;

// `file` is the caller's.
void recipient_file_init(RecipientFile *out, FILE *file, bool csv);
void recipient_file_done(RecipientFile *file);
RecipientRead recipient_file_next(RecipientFile *file, Buf *out, Error *err);
