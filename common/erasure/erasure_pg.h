// SPDX-License-Identifier: Apache-2.0
// Postgres for the erasure's commands, which wait: text parameters, text answers.
#pragma once

#include <libpq-fe.h>

#include "common/base/arena.h"
#include "common/base/cleanup.h"
#include "common/base/error.h"
#include "common/base/str.h"

DEFINE_CLEANUP(PGresult_cleanup, PGresult *, PQclear)

// The caller closes it by PQfinish. NULL: ERROR_TRANSIENT.
PGconn *erasure_pg_open(const char *url, Error *err);
// NULL: failed, with the kind of what Postgres said.
PGresult *erasure_pg_query(
    PGconn *pg, const char *sql, int count, const char *const *params, Error *err);
// Whose rows this connection sees from now on.
bool erasure_pg_tenant(PGconn *pg, const char *tenant, Error *err);

const char *erasure_pg_texts(const Str *values, size_t count, Arena *arena); // text[]
// A bytea[] as a parameter, and a bytea of an answer; in `arena`.
const char *erasure_pg_bytes(const Str *values, size_t count, Arena *arena);
Str erasure_pg_get_bytes(const PGresult *res, int row, int column, Arena *arena);
