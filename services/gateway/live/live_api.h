// SPDX-License-Identifier: Apache-2.0
// What goes on for as long as a client listens: statuses, inboxes and the pipeline as server-sent
// events; and the pipeline's picture.
#pragma once

#include "services/gateway/live/inbox_streams.h"
#include "services/gateway/live/status_streams.h"

typedef struct LiveOptions {
    Bus *bus;
    DbPool *pool;
    PeopleWait *inbox_wait;
    const Auth *auth;
    const Catalog *catalog;
    Metrics *metrics;
    uv_loop_t *loop;
} LiveOptions;

typedef struct Live Live;

Live *live_new(const LiveOptions *options); // borrows all
void live_api_add(Api *api, Live *live);
InboxStreams *live_inbox(Live *live);
void live_stop(Live *live, void (*on_stopped)(void *ctx), void *ctx);
void live_free(Live *live); // when server, pool and bus are gone
