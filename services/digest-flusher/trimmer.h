// SPDX-License-Identifier: Apache-2.0
// Trimmer: every few seconds asks how full the working streams are and trims those that are nearly
// so (common/bus/topology/trim.h). It is the clock's because nobody else looks at all of them. Any
// number of replicas: they remove the same messages.
#pragma once

#include "common/bus/jetstream/bus.h"
#include "common/db/db.h"
#include "common/service/metrics.h"

typedef struct Trimmer Trimmer;

// Borrows all until trimmer_free. The first pass is one period from now.
Trimmer *trimmer_new(Bus *bus, DbPool *pool, Metrics *metrics, int64_t period_ms);
// A pass under way is finished, then on_stopped; then it may be freed.
void trimmer_stop(Trimmer *trimmer, void (*on_stopped)(void *ctx), void *ctx);
void trimmer_free(Trimmer *trimmer);
