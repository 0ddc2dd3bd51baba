// SPDX-License-Identifier: Apache-2.0
// The host names of a Postgres URL, looked up off the loop. libpq would ask the DNS on the loop
// thread, which then stands for as long as the answer takes: 20 s for the name of a server that is
// stopped, in a network of containers. Private to common/db.
#pragma once

#include <uv.h>

#include "common/base/error.h"

// libpq's three lists, of the same length: each host with one address (none: a socket's folder) and
// its port (none: the default).
typedef struct DbHosts {
    const char *host;
    const char *hostaddr;
    const char *port;
} DbHosts;

typedef struct DbLookup DbLookup;
// From the loop, once. hosts are valid inside; NULL: no name is known, and *err says which.
typedef void (*DbLookedUp)(void *ctx, const DbHosts *hosts, const Error *err);

// NULL: there is nothing to look up (addresses and sockets only, or libpq is to find out itself).
// Names that are not known are left out as long as another one is.
DbLookup *db_lookup_start(uv_loop_t *loop, const char *url, DbLookedUp done, void *ctx);
// `done` will not be called. The loop turns until the DNS has answered. NULL-safe.
void db_lookup_drop(DbLookup *lookup);
