// SPDX-License-Identifier: Apache-2.0
// A file of records, CSV under a header or NDJSON, read in a window of bounded size: the one reader
// of `batch add`, `recipient import` and `suppress import`. What its columns mean its kind says.
// Law: a broken record costs itself and is named by its line; the rest is read.
#pragma once

#include <stdio.h>

#include "common/base/buf.h"
#include "common/base/error.h"
#include "services/cli/import/csv.h"

// The header of a CSV file. A byte order mark and blanks around a name are gone.
typedef struct RecordColumns {
    const char *names[CSV_FIELDS_MAX];
    size_t count; // 0: NDJSON, or no header yet
} RecordColumns;

typedef struct Record {
    Str line;          // NDJSON, not empty; else empty
    const Str *fields; // CSV: one of each column; NULL: NDJSON
} Record;

typedef struct RecordKind {
    size_t line_max; // bytes of an NDJSON line
    bool short_rows; // a row may leave out fields at its end: they are empty
    // ERROR_PERMANENT: a file with this header is not read.
    bool (*check_header)(const RecordColumns *columns, Error *err);
    // A row as one line of JSON and a line break; NULL: never asked for (record_file_next_line).
    bool (*write_row)(const RecordColumns *columns, const Str *fields, Buf *out, Error *err);
} RecordKind;

typedef struct RecordFile {
    const RecordKind *kind;
    FILE *file;
    bool csv;
    int64_t size_bytes; // 0: not known
    size_t line;        // of what was read last, from 1
    size_t next_line;
    int64_t bytes; // used up
    RecordColumns columns;
    bool at_end;
    bool skipping; // the rest of a line that was too long
    Buf window;
    size_t used;  // of the window; dropped when more is read, not line by line
    Arena *names; // of the columns
    Arena *arena; // of a record
} RecordFile;

typedef enum RecordRead {
    RECORD_END,
    RECORD_READ,
    RECORD_BROKEN, // err says what, file->line where; the rest can be read
    RECORD_FAILED, // err: nothing more can be read
} RecordRead;

// By --format csv|ndjson (flag; NULL: not given), else by the file's ending. `otherwise`: what
// another ending is, "csv" or "ndjson"; NULL: ERROR_USAGE.
bool record_format(
    const char *flag, const char *path, const char *otherwise, bool *ret_csv, Error *err);
// "-" is standard input. ERROR_USAGE: it cannot be opened; nothing is to be closed then.
bool record_file_open(
    RecordFile *out, const RecordKind *kind, const char *path, bool csv, Error *err);
// Of a file that is the caller's.
void record_file_init(RecordFile *out, const RecordKind *kind, FILE *file, bool csv);
void record_file_close(RecordFile *file); // what record_file_open opened, or init was given

// The record lives until the next call.
RecordRead record_file_next(RecordFile *file, Record *ret, Error *err);
// The same as a line of JSON with its line break, appended to `out`: an NDJSON line as it stands.
RecordRead record_file_next_line(RecordFile *file, Buf *out, Error *err);

// For check_header: each column has a name, and no two the same one.
bool record_columns_check(const RecordColumns *columns, Error *err);
