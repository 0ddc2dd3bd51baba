// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/live/live_api.h"

#include <stdlib.h>

#include "services/gateway/ops/ops_api.h"

struct Live {
    StatusStreams *statuses;
    InboxStreams *inboxes;
    OpsApi *ops;
    int stopping;
    void (*on_stopped)(void *ctx);
    void *stopped_ctx;
};

Live *live_new(const LiveOptions *o)
{
    Live *live = xcalloc(1, sizeof *live);
    live->statuses = status_streams_new(
        &(StatusStreamsOptions){o->bus, o->auth, o->catalog, o->metrics, o->loop});
    live->inboxes = inbox_streams_new(
        &(InboxStreamsOptions){o->bus, o->pool, o->inbox_wait, o->catalog, o->metrics, o->loop});
    live->ops = ops_api_new(o->bus, o->auth, o->metrics, o->loop);
    return live;
}

void live_api_add(Api *api, Live *live)
{
    status_streams_add(api, live->statuses);
    ops_api_add(api, live->ops);
}

InboxStreams *live_inbox(Live *live)
{
    return live->inboxes;
}

static void on_part_stopped(void *ctx)
{
    Live *live = ctx;
    if (--live->stopping == 0) {
        live->on_stopped(live->stopped_ctx);
    }
}

void live_stop(Live *live, void (*on_stopped)(void *ctx), void *ctx)
{
    live->stopping = 3;
    live->on_stopped = on_stopped;
    live->stopped_ctx = ctx;
    status_streams_stop(live->statuses, on_part_stopped, live);
    inbox_streams_stop(live->inboxes, on_part_stopped, live);
    ops_api_stop(live->ops, on_part_stopped, live);
}

void live_free(Live *live)
{
    if (live != NULL) {
        status_streams_free(live->statuses);
        inbox_streams_free(live->inboxes);
        ops_api_free(live->ops);
        free(live);
    }
}
