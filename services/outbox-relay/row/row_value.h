// SPDX-License-Identifier: Apache-2.0
// The value of a mapping's Source for one row: text or JSON. Private to row*.c. Pure. JSON in a
// column is parsed once per row; members that Postgres has extracted are parsed only if needed.
#pragma once

#include "services/outbox-relay/row/row.h"

typedef struct RowReader {
    const Mapping *mapping;
    const ColumnKind *kinds;
    const Row *row;
    Arena *arena;
    json_t *roots[MAPPING_COLUMNS_MAX + MAPPING_MEMBERS_MAX]; // owned; NULL: not parsed yet
    Error *err;
} RowReader;

void row_reader_done(RowReader *r);

// Fails with "<field> (column 'x') <text>".
bool row_unfit(RowReader *r, const Source *source, const char *field, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
// jansson's own error text quotes the row, so it is not used.
const char *row_why_no_json(const json_error_t *where);
// The field as text after all transformations; empty: not given, null or empty. Control characters
// are not rejected: check them where they matter.
bool row_text(RowReader *r, const Source *source, const char *field, Str *ret);
// Fails with what is missing, of a field whose text is empty: "has no member 'body'".
bool row_empty(RowReader *r, const Source *source, const char *field);
// The same as packed JSON of any kind; len 0: not given or null.
bool row_json(RowReader *r, const Source *source, const char *field, Str *ret);
// The same, which must be an object.
bool row_object(RowReader *r, const Source *source, const char *field, Str *ret);
