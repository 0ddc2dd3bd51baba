// SPDX-License-Identifier: Apache-2.0
// Whether this database may delete in the bucket: asked before segments end by age. A fork or a
// restored backup, which knows the same objects, must not (common/archive/owner.h). From the loop.
#pragma once

#include "common/db/db.h"
#include "common/storage/storage.h"

typedef struct LogOwner LogOwner;

LogOwner *log_owner_new(DbPool *pool, Storage *storage); // borrows both
void log_owner_free(LogOwner *owner);                    // NULL-safe; not while it asks
// err NULL: the bucket is this database's, or has no owner yet. PERMANENT: it is another's;
// TRANSIENT: that is not known yet.
typedef void (*LogOwnerAnswer)(void *ctx, const Error *err);
void log_owner_ask(LogOwner *owner, LogOwnerAnswer on_answer, void *ctx); // one at a time
