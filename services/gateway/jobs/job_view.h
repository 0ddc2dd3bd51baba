// SPDX-License-Identifier: Apache-2.0
// Columns of a job's row as JSON.
#pragma once

#include <jansson.h>

#include "common/db/db.h"

#define JOB_PREFIX "job_"

// NULL in the table is null. New references.
json_t *job_text(const PGresult *rows, int row, int column);
json_t *job_time(const PGresult *rows, int row, int column);
json_t *job_json(const PGresult *rows, int row, int column); // a column of JSON
