// SPDX-License-Identifier: Apache-2.0
// What Postgres says, as an Error: of common/db, and of programs that use libpq blocking.
// The text is the statement's name, Postgres's primary message and its SQLSTATE; the detail is left
// out, because it quotes the values of rows.
#pragma once

#include <libpq-fe.h>

#include "common/base/error.h"

// Class 08, 40, 53, 55, 57: TRANSIENT. 22, 23, 54 and P0 (raised by our own functions): PERMANENT.
// 28, 3D, 3F, 42: CONFIG. What is not known: TRANSIENT, because it loses nothing.
ErrorKind db_error_kind(const char *sqlstate); // NULL: no answer at all
bool db_error_result(const PGresult *res, const char *name, Error *err);
bool db_error_connection(
    PGconn *pg, const char *what, Error *err); // TRANSIENT, the first line only
// Postgres is there and cannot write: class 53 but for 53300 (disk or memory full), 25006
// (read-only). Of a text that db_error_result made.
bool db_error_refuses_writes(const Error *err);
// A prepared statement that the server no longer has, or that a migration has outdated: a fresh
// connection cures it.
bool db_error_is_stale(const PGresult *res);
