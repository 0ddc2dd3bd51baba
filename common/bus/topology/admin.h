// SPDX-License-Identifier: Apache-2.0
// Making and checking the topology on a server: create or update each stream and durable consumer,
// read the echoed configuration back, say where the server's answer differs (old servers ignore
// what they do not know).
#pragma once

#include "common/bus/jetstream/bus.h"
#include "common/bus/topology/accounts.h"
#include "common/bus/topology/topology.h"

typedef struct TopologyOptions {
    int replicas;           // 1 or 3; 0: as many as each stream has
    double bytes_scale;     // multiplies every stream's max_bytes; 1: as in the table; 0: each
                            // stream keeps its own. With 0, a stream that is not there takes after
                            // the largest that is; with none there: 1 replica, scale 1
    int ack_wait_ms;        // 0: each consumer's own
    int duplicate_window_s; // 0: 120
    const Accounts *accounts; // whose subscribers get their consumers; NULL: none
} TopologyOptions;

// What a consumer is made with: a json_t of the caller's (jansson). ack_wait_ms 0: its own.
struct json_t *topology_consumer_config(const ConsumerSpec *spec, int ack_wait_ms);

// on_step(ctx, "stream STATUS", "created" | "updated" | "present" | "differs: ..."); then on_done
// once.
void topology_apply(
    Bus *bus, const TopologyOptions *options,
    void (*on_step)(void *ctx, const char *what, const char *result),
    void (*on_done)(void *ctx, const Error *err), void *ctx);
