// SPDX-License-Identifier: Apache-2.0
// What operators ask for in archive.requests, done one at a time, oldest first; and the progress
// that `stentor archive` shows, written over a connection of its own.
#pragma once

#include "common/archive/archive_run.h"

typedef struct RequestProgress { // ctx of ArchiveProgress
    PGconn *pg;
    char request[24]; // "": none is under way
    char epoch[24];
    uint64_t rows, bytes; // of the step under way, not written yet
    int64_t written_us;   // monotonic
} RequestProgress;

// Callbacks for ArchiveOptions; the connection stays the caller's.
ArchiveProgress request_progress(RequestProgress *progress);

// The oldest request that waits, or that a killed process left. *ret_worked: there was one; whether
// it went well is in its row. false: nothing can go on.
bool archive_serve(
    Archive *archive, RequestProgress *progress, const ArchiveRun *defaults, bool *ret_worked,
    Error *err);
