// SPDX-License-Identifier: Apache-2.0
// The work on keys (common/keywork) in one replica of ingest: a turn every five seconds, in a
// thread. The other replicas stand by. What was done is logged, how it stands is measured. AUDIT
// has the end of an epoch key before the key is destroyed: without NATS none is.
#pragma once

#include <uv.h>

#include "common/bus/jetstream/bus.h"
#include "common/keywork/keywork.h"
#include "common/service/metrics.h"

typedef struct KeyWork KeyWork;

// The options' strings are copied; their witness is this one's. Borrows the bus. The first turn is
// at once.
KeyWork *key_work_new(uv_loop_t *loop, Bus *bus, const KeyworkOptions *options, Metrics *metrics);
// on_freed comes from the loop, once the turn under way has ended: soon.
void key_work_free(KeyWork *work, void (*on_freed)(void *ctx), void *ctx);
