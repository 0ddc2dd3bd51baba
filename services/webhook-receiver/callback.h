// SPDX-License-Identifier: Apache-2.0
// One HTTP callback: route, key, signature, then sealed onto INBOUND; 200 only after JetStream has
// it. Law: a body is not parsed here, and a body without a valid signature is not kept.
#pragma once

#include "common/bus/jetstream/bus.h"
#include "common/codec/seal.h"
#include "common/http/server.h"
#include "common/service/metrics.h"
#include "services/webhook-receiver/inbound_keys.h"

enum { CALLBACKS_MAX = 256 }; // waiting for JetStream's ack; beyond it 503

typedef struct CallbackEndpoint {
    Bus *bus;
    MasterKey *master;
    const InboundKeys *keys;
    int64_t max_age_s; // of the signed timestamp; 0: any
    bool (*ready)(void *ctx);
    void *ready_ctx;
    Metric *taken;
    Metric *refused;
    size_t waiting;
} CallbackEndpoint;

// After the headers: checks path, method, timestamp. false: answered.
bool callback_admit(CallbackEndpoint *endpoint, HttpRequest *request);
void callback_handle(
    CallbackEndpoint *endpoint, HttpRequest *request); // an admitted request, with its body

// "/v1/inbound/<tenant>/<vendor>". false: not such a path.
bool callback_route(Str path, Str *ret_tenant, Str *ret_vendor);
