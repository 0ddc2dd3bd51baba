// SPDX-License-Identifier: Apache-2.0
// A file of a batch's members, CSV or NDJSON, read in a window of bounded size: one member at a
// time as a line of PUT /v1/batches/{id}/members. A CSV's header names its columns: to, name,
// recipient_id, locale; each other one is a variable of that name ("variables.name" for one that is
// called like one of these). What only the API knows, it checks; an NDJSON line goes as it is.
#pragma once

#include <stdio.h>

#include "common/base/buf.h"
#include "common/base/error.h"
#include "services/cli/import/csv.h"

enum { MEMBER_LINE_MAX = 128 * 1024, MEMBER_COLUMN_MAX = 64 };

typedef struct MemberFile {
    FILE *file; // the caller's
    bool csv;
    bool at_end;
    bool skipping; // the rest of a line that was too long
    size_t line;   // of what was read last, from 1
    size_t next_line;
    int64_t bytes; // used up
    Buf window;
    Arena *arena;
    char columns[CSV_FIELDS_MAX][MEMBER_COLUMN_MAX];
    size_t column_count; // 0: no header yet
} MemberFile;

typedef enum MemberRead {
    MEMBER_END,
    MEMBER_LINE,   // one line and its line break were appended to `out`
    MEMBER_BROKEN, // err says what, file->line where; the rest can be read
    MEMBER_FAILED, // err: nothing more can be read
} MemberRead;

void member_file_init(MemberFile *out, FILE *file, bool csv);
void member_file_done(MemberFile *file);
MemberRead member_file_next(MemberFile *file, Buf *out, Error *err);
