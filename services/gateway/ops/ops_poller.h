// SPDX-License-Identifier: Apache-2.0
// Asks JetStream once a second for its picture of the topology, while anyone wants it and for some
// seconds longer; else it asks nothing. Everyone who asks this process gets the same picture.
#pragma once

#include "common/bus/jetstream/bus.h"
#include "services/gateway/ops/ops_picture.h"

typedef struct OpsPoller OpsPoller;

OpsPoller *ops_poller_new(Bus *bus, uv_loop_t *loop, void (*on_picture)(void *ctx), void *ctx);
void ops_poller_want(OpsPoller *poller);
// Of at most two seconds ago, with rates; NULL: on_picture comes.
const OpsPicture *ops_poller_picture(const OpsPoller *poller);
void ops_poller_stop(OpsPoller *poller, void (*on_stopped)(void *ctx), void *ctx);
void ops_poller_free(OpsPoller *poller); // after on_stopped, and when the bus is gone
