// SPDX-License-Identifier: Apache-2.0
// GET /v1/live/status: every status of a tenant as it happens, as server-sent events. A client that
// comes back with Last-Event-ID gets what it missed first. Nothing is heard while no client is
// there.
#pragma once

#include "common/api/api.h"
#include "common/bus/jetstream/bus.h"
#include "common/http/stream.h"

typedef struct StatusStreams StatusStreams;

typedef struct StatusStreamsOptions {
    Bus *bus;
    const Auth *auth;
    const Catalog *catalog;
    Metrics *metrics;
    uv_loop_t *loop;
} StatusStreamsOptions;

enum { STATUS_STREAMS_TENANT_MAX = 6000 }; // half of all (common/http/stream.h)

StatusStreams *status_streams_new(const StatusStreamsOptions *options); // borrows all
void status_streams_add(Api *api, StatusStreams *streams);
// The streams themselves end with the HTTP server.
void status_streams_stop(StatusStreams *streams, void (*on_stopped)(void *ctx), void *ctx);
void status_streams_free(StatusStreams *streams); // after on_stopped, server and bus are gone
