// SPDX-License-Identifier: Apache-2.0
// What the log has of a person: their requests with the variables that the templates were given.
#pragma once

#include "common/access/access_export.h"

typedef struct AccessLog {
    json_t *sources;  // a row for each stream and segment that was read
    json_t *requests; // by notification id
} AccessLog;

// Sets the section "requests" of x->root, and log->sources.
bool access_log_read(AccessExport *x, AccessLog *log, Error *err);
