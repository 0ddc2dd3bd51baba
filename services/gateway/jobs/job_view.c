// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/jobs/job_view.h"

#include "common/base/clock.h"

json_t *job_text(const PGresult *rows, int row, int column)
{
    Str text = db_get_text(rows, row, column);
    return db_is_null(rows, row, column) ? json_null() : json_stringn(text.ptr, text.len);
}

json_t *job_time(const PGresult *rows, int row, int column)
{
    char at[CLOCK_RFC3339_SIZE];
    int64_t at_us = db_get_time(rows, row, column);
    clock_format(at_us, at);
    return at_us > 0 ? json_string(at) : json_null();
}

json_t *job_json(const PGresult *rows, int row, int column)
{
    Str text = db_get_text(rows, row, column);
    json_t *parsed = json_loadb(text.ptr != NULL ? text.ptr : "", text.len, 0, NULL);
    return parsed != NULL ? parsed : json_null();
}
