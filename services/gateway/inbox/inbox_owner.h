// SPDX-License-Identifier: Apache-2.0
// Whose record an inbox is, by its in-app address, or by the recipient's id, which is the address
// of those who have no other.
#pragma once

#include "common/codec/master_key.h"
#include "common/db/db.h"
#include "common/http/server.h"

typedef struct InboxOwner {
    DbPool *pool;
    const MasterKey *master;
    HttpRequest *http; // in its arena
    Str tenant;
    Str address;
    // err NULL: `id` is the recipient's, who may have no record yet; empty: no record has this
    // address, or several have.
    void (*done)(struct InboxOwner *owner, const Error *err);
    void *ctx;
    Str id;
} InboxOwner;

void inbox_owner_find(InboxOwner *owner);
