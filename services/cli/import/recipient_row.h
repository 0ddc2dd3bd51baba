// SPDX-License-Identifier: Apache-2.0
// A row of a CSV file as a line of POST /v1/recipients/import. Pure.
#pragma once

#include "common/base/buf.h"
#include "common/base/error.h"
#include "services/cli/import/csv.h"

// What each column of the file is.
typedef struct RowColumns {
    char names[CSV_FIELDS_MAX][48];
    size_t count;
} RowColumns;

// From the header line. ERROR_PERMANENT names the column that is unknown or stands there twice.
bool row_columns(const CsvRecord *header, RowColumns *ret, Error *err);
// Appends one line of JSON and a line break. ERROR_PERMANENT names the column that is wrong; what
// only the API knows (addresses, zones) it checks.
bool recipient_row_json(const RowColumns *columns, const CsvRecord *row, Buf *out, Error *err);
