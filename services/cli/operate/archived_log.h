// SPDX-License-Identifier: Apache-2.0
// The log in object storage, for commands: where STENTOR_STORAGE_URL is set.
#pragma once

#include "common/eventlog/log_reader.h"
#include "services/cli/cli.h"

typedef struct ArchivedLog {
    bool open; // false: no storage is set; the streams are all there is
    LogPast past;
} ArchivedLog;

// Connects to the database of STENTOR_DATABASE_URL, where the segments' rows are.
bool archived_log_open(const Cli *cli, bool passes_holes, ArchivedLog *ret, Error *err);
void archived_log_close(ArchivedLog *log); // safe after a failed open
