// SPDX-License-Identifier: Apache-2.0
// After a rotation of the master key: wraps again, in batches, what another than the current master
// key has wrapped. Every replica may do it at once: a row is written only in the place of what was
// read. With nothing to do it asks three times an index, once a minute. Law: it never writes over
// what the current key has wrapped.
#pragma once

#include "common/codec/master_key.h"
#include "common/db/db.h"
#include "common/service/metrics.h"

typedef struct Rewrap Rewrap;

// Borrows the pool and the master key. The first look is at once.
Rewrap *rewrap_new(DbPool *pool, MasterKey *master, Metrics *metrics);
// on_freed comes from the loop; a batch under way is answered by the pool first.
void rewrap_free(Rewrap *rewrap, void (*on_freed)(void *ctx), void *ctx);
