// SPDX-License-Identifier: Apache-2.0
// What the `outbox` commands share: the mapping file, the application's database
// (STENTOR_DATABASE_URL), and the statements that the relay uses. Blocking.
#pragma once

#include <libpq-fe.h>

#include "common/outbox/sql/relay_sql.h"
#include "services/cli/cli.h"

typedef struct Outbox {
    Cli *cli;
    Mapping *mapping;
    RelaySql *sql;
    PGconn *pg;
} Outbox;

// Reads --mapping and connects; a superuser only with --as-superuser. Close it either way.
bool outbox_open(Outbox *outbox, Cli *cli, Error *err);
bool outbox_become(Outbox *outbox, Error *err); // --role ROLE: everything further as that role
// Both, and the mapping fits the tables: all statements may be used.
bool outbox_open_bound(Outbox *outbox, Cli *cli, Error *err);
void outbox_close(Outbox *outbox);

// Text parameters (NULL: null), binary answer; PQclear it. NULL: failed, with `what` in the error.
PGresult *outbox_query(
    Outbox *outbox, const char *what, const char *sql, int count, const char *const *params,
    Error *err);
bool outbox_exec(Outbox *outbox, const char *what, const char *sql, Error *err);
// Wakes the relays.
bool outbox_notify(Outbox *outbox, Error *err);
