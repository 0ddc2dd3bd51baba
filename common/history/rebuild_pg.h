// SPDX-License-Identifier: Apache-2.0
// The blocking connection of a rebuild: as the owner of the live schema, with the rebuild's lock.
// For the command line. What stands in a transaction that was not committed is rolled back when it
// closes, or when its process dies.
#pragma once

#include <libpq-fe.h>

#include "common/base/cleanup.h"
#include "common/base/error.h"

typedef void (*RebuildLine)(void *ctx, const char *line);

typedef struct RebuildPg RebuildPg;

// Takes the lock `stentor.rebuild.<lock>`, which a crash frees. ERROR_CONFLICT: another rebuild has
// it. NULL: failed.
RebuildPg *rebuild_pg_open(const char *url, const char *schema, const char *lock, Error *err);
void rebuild_pg_close(RebuildPg *pg); // NULL-safe

// `param`: $1, or NULL. The result is the caller's; NULL: failed, and `what` is in the error.
PGresult *rebuild_pg_ask(
    RebuildPg *pg, const char *what, const char *sql, const char *param, Error *err);
bool rebuild_pg_run(RebuildPg *pg, const char *what, const char *sql, Error *err);
DEFINE_CLEANUP(rebuild_pg_free, PGresult *, PQclear)

// From here to the end of the transaction no process writes these tables: a flush in flight has
// ended, the next one waits before its first statement. Readers go on.
bool rebuild_pg_freeze(RebuildPg *pg, const char *tables, Error *err);
bool rebuild_pg_thaw(RebuildPg *pg, Error *err);
