// SPDX-License-Identifier: Apache-2.0
// The rights of our own services at NATS: one row a service (nats_rights.c), written as the users
// of a nats-server configuration by `stentor nats-config` (nats_users.c). The accounts of others
// are in accounts.h.
#pragma once

#include "common/base/buf.h"

typedef struct NatsRights {
    const char *service; // also the NATS user's name: "stentor-ingest"
    const char *publish; // space-separated subjects besides acks, pulls and readers' consumer calls
    const char *consumes; // space-separated streams read by a durable consumer (worker)
    const char *reads;    // space-separated streams read in order (reader, projector)
    const char *serves;   // subject and queue of what other accounts ask of it (serve.h), or NULL
} NatsRights;

const NatsRights *nats_rights(size_t *ret_count); // the rows are static
// Space-separated subjects that the service listens to (listen.h); NULL: none.
const char *nats_hears(const char *service);

// The users of our own account in a nats-server configuration (accounts.h): one a row with
// just its subjects. password_of(ctx, index) gives the password of each row.
void nats_rights_write_users(Buf *out, Str (*password_of)(void *ctx, size_t index), void *ctx);
