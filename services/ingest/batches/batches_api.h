// SPDX-License-Identifier: Apache-2.0
// /v1/batches: created, filled part by part, started, shown. Everything is one or two
// transactions; an upload is read in slices between the turns of the loop, at most
// BATCH_UPLOADS_MAX of them at a time; a dry run counts in pages, BATCH_COUNTS_MAX at a time, so
// that requests wait for a page at most.
#pragma once

#include "common/api/api.h"
#include "common/routing/routes.h"
#include "services/ingest/batches/batch_json.h"
#include "services/ingest/batches/batch_run.h"
#include "services/ingest/batches/batch_upload.h"

enum { BATCH_UPLOADS_MAX = 8, BATCH_COUNTS_MAX = 2 };

typedef struct PartCall PartCall;

typedef struct BatchesApi {
    DbPool *pool;
    MasterKey *master;
    const Catalog *catalog;
    ChannelSet delivered; // the channels that have a vendor
    const Routes *routes; // whose credentials give a tenant more of them
    BatchRunner *runner;
    // its own:
    uv_timer_t slice; // reads on in the uploads, one slice of one of them a turn of the loop
    PartCall *uploads;
    int counting;     // dry runs under way
    int upload_count; // those that wait for Postgres included
    void (*on_closed)(void *ctx);
    void *closed_ctx;
} BatchesApi;

// Adds the routes; borrows what stands above in the struct.
void batches_api_add(Api *api, BatchesApi *batches, uv_loop_t *loop);
// Once no request is left.
void batches_api_close(BatchesApi *batches, void (*on_closed)(void *ctx), void *ctx);

// Private to batches_api.c and batches_parts.c.
typedef struct BatchCall {
    BatchesApi *api;
    ApiCall *base;
    Arena *arena; // the request's
    Str tenant;
    Str id; // of the batch, from the path
} BatchCall;

void batches_part_put(ApiCall *call); // PUT and POST /v1/batches/{}/members
void batches_part_on_slice(uv_timer_t *timer);
BatchCall batch_call(ApiCall *call);
// false: answered with 404, for it cannot be one's id.
bool batch_call_has_id(const BatchCall *call);
DbTxn *batch_call_begin(const BatchCall *call);
void batch_call_missing(const BatchCall *call);
void batch_call_conflict(const BatchCall *call, const char *why); // 409
void batch_call_respond(
    const BatchCall *call, int status, const BatchRow *row, const BatchTotals *totals);
