// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include "common/db/db.h"

static const int64_t POSTGRES_EPOCH_US = 946684800000000; // 2000-01-01 after 1970-01-01

int db_rows(const PGresult *res)
{
    return res != NULL ? PQntuples(res) : 0;
}

bool db_is_null(const PGresult *res, int row, int column)
{
    return PQgetisnull(res, row, column) == 1;
}

Str db_get_text(const PGresult *res, int row, int column)
{
    return str_of(PQgetvalue(res, row, column), (size_t)PQgetlength(res, row, column));
}

int64_t db_get_int(const PGresult *res, int row, int column)
{
    Str bytes = db_get_text(res, row, column);
    if (bytes.len == 0 || bytes.len > 8) {
        return 0;
    }
    bool negative = bytes.len > 1 && ((unsigned char)bytes.ptr[0] & 0x80) != 0;
    uint64_t bits = negative ? UINT64_MAX : 0;
    for (size_t i = 0; i < bytes.len; i++) {
        bits = bits << 8 | (unsigned char)bytes.ptr[i];
    }
    return (int64_t)bits;
}

int64_t db_get_time(const PGresult *res, int row, int column)
{
    if (db_is_null(res, row, column)) {
        return 0;
    }
    return db_get_int(res, row, column) + POSTGRES_EPOCH_US;
}
