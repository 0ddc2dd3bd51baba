// SPDX-License-Identifier: Apache-2.0
// Statements on a connection of one's own, blocking, and texts from their rows. Private to
// common/archive and its callers' processes.
#pragma once

#include <libpq-fe.h>
#include <stdint.h>

#include "common/base/cleanup.h"
#include "common/base/error.h"

DEFINE_CLEANUP(PGresult_cleanup, PGresult *, PQclear)

// NULL: TRANSIENT. Times are of UTC; the server's notices are not shown.
PGconn *archive_connect(const char *url, const char *application_name, Error *err);
// The rows, in text; NULL: by common/db/errors.h. `what` names the statement in the error.
PGresult *archive_ask(
    PGconn *pg, const char *what, const char *sql, const char *const *params, int count, Error *err)
    __attribute__((warn_unused_result));
// The same, without its rows.
bool archive_do(
    PGconn *pg, const char *what, const char *sql, const char *const *params, int count,
    Error *err);
// An UPDATE that must change exactly one row: CONFLICT when another process was first.
bool archive_change(
    PGconn *pg, const char *what, const char *sql, const char *const *params, int count, Error *err)
    __attribute__((warn_unused_result));
bool archive_begin(PGconn *pg, Error *err) __attribute__((warn_unused_result));
bool archive_commit(PGconn *pg, Error *err) __attribute__((warn_unused_result));
void archive_rollback(PGconn *pg); // outside of a transaction: nothing

const char *archive_text(const PGresult *rows, int row, int column);                     // "": null
int64_t archive_number(const PGresult *rows, int row, int column);                       // 0: null
bool archive_bytes(const PGresult *rows, int row, int column, uint8_t *out, size_t len); // bytea
