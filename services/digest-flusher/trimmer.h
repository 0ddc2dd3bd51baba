// SPDX-License-Identifier: Apache-2.0
// Trimmer: every few seconds checks how full the working streams and DEAD are and trims nearly full
// ones (common/bus/topology/trim.h, common/deadletter/dead_trim.h). Any number of replicas: they
// remove the same messages.
#pragma once

#include "common/bus/jetstream/bus.h"
#include "common/db/db.h"
#include "common/service/metrics.h"

typedef struct Trimmer Trimmer;

// Borrows all until trimmer_free. The first pass is one period from now.
Trimmer *trimmer_new(Bus *bus, DbPool *pool, Metrics *metrics, int64_t period_ms);
// Finishes a pass in progress, then calls on_stopped; then it may be freed.
void trimmer_stop(Trimmer *trimmer, void (*on_stopped)(void *ctx), void *ctx);
void trimmer_free(Trimmer *trimmer);
