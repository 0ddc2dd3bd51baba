// SPDX-License-Identifier: Apache-2.0
// What renderer.c (start and stop), turns.c (batches) and one_request.c share.
#pragma once

#include "common/bus/consume/worker.h"
#include "common/config/config_mirror.h"
#include "common/db/keyring.h"
#include "common/render/assets.h"
#include "common/render/render_events.h"
#include "common/render/template_cache.h"
#include "common/trace/stage.h"
#include "services/renderer/footer.h"
#include "services/renderer/renderer.h"
#include "services/renderer/second_check.h"
#include "services/renderer/tracked.h"

enum { LANES = PRIORITY_COUNT - 1 };

typedef struct Renderer Renderer;

typedef struct Lane {
    Renderer *renderer;
    Priority priority;
    Worker *worker;
    Metric *rendered;
    struct Batch *waiting, *last_waiting; // for a turn of the loop
} Lane;

struct Renderer {
    Service *service;
    Keyring *keyring;
    ConfigMirror *mirror;
    TemplateCache *templates;
    Senders *senders;
    Assets *assets;
    Suppressions *suppressions;
    OptOutLinks links;
    Tracked tracked;
    Arena *arena; // of the process
    Draft draft;
    TemplateTools *tools;
    int64_t cpu_max_us;
    Lane lanes[LANES];
    uv_idle_t turn; // of the batches that wait; a timer of 0 ms would not let the loop read
    Metric *failed[FAILURE_COUNT];
    Metric *suppressed;
    Metric *unsafe_urls;
    Metric *tracked_links;
    Metric *ignored; // failures of replayed requests
    Metric *seconds;
    Metric *batch_size;
    Tracer *tracer; // NULL: no traces
    bool stopping;
    int open; // parts that have not stopped; later: not been freed
};

// One delivery that could be read. wants[i] of the batch belongs to items[i].
typedef struct Item {
    Delivery *delivery;
    const Request *request;
} Item;

// one_request.c: renders one and settles it, or gives it back for a template that may still come.
// `traced` gathers the links of its batch.
void renderer_handle(
    const Lane *lane, const Item *item, DataKey *key, TraceBatch *traced, int64_t now_us);

// render_trace.c: the span of a request that `out` (NULL: there is none) follows from.
typedef struct RenderSpan {
    const Delivery *delivery;
    const Request *request;
    const BusOut *out;
    const RenderFailure *failure; // code FAILURE_NONE: it did not fail
    int64_t started_at_us;
} RenderSpan;
// Sets the delivery's traceparent: in which trace the request goes on.
void render_resume(Tracer *tracer, Delivery *delivery, const Request *request);
void render_trace(Tracer *tracer, TraceBatch *batch, const RenderSpan *span);

// turns.c: a WorkerHandler; ctx is the Lane.
void renderer_on_batch(void *ctx, Delivery **deliveries, size_t count);
