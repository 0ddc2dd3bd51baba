// SPDX-License-Identifier: Apache-2.0
// Where searches look: the index `find`, and history. Both are the gateway's own database unless an
// option names another one; then a pool of its own is made here.
#pragma once

#include "common/db/db.h"
#include "common/service/service.h"
#include "services/gateway/find/find_options.h"

typedef struct FindStore {
    bool on; // false: there is no index
    DbPool *index;
    DbPool *history;
    const char *index_url;       // for the projector's lock
    bool own_index, own_history; // made here
    int closing;                 // of these, still open
    void (*on_closed)(void *ctx);
    void *ctx;
} FindStore;

// The options' texts must outlive it. Never fails for an absent server.
void find_store_open(FindStore *store, Service *service, const FindOptions *options);
// on_closed comes from the loop, or at once when no pool was made here.
void find_store_close(FindStore *store, void (*on_closed)(void *ctx), void *ctx);
