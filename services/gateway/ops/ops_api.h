// SPDX-License-Identifier: Apache-2.0
// /v1/ops/pipeline, streams, consumers, processes, and /v1/live/pipeline, which says the first once
// a second. All of it is of all tenants together: scope ops:read.
#pragma once

#include "common/api/api.h"
#include "common/bus/jetstream/bus.h"

typedef struct OpsApi OpsApi;

OpsApi *ops_api_new(Bus *bus, const Auth *auth, Metrics *metrics, uv_loop_t *loop); // borrows all
void ops_api_add(Api *api, OpsApi *ops);
void ops_api_stop(OpsApi *ops, void (*on_stopped)(void *ctx), void *ctx);
void ops_api_free(OpsApi *ops); // when server and bus are gone
