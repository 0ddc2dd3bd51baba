// SPDX-License-Identifier: Apache-2.0
// One HTTP callback: route, capability, key, signature, then sealed onto INBOUND; 200 only after
// JetStream has it. Law: nothing of a body without a valid signature is kept but its hash.
#pragma once

#include "common/bus/jetstream/bus.h"
#include "common/codec/seal.h"
#include "common/http/server.h"
#include "common/service/metrics.h"
#include "services/webhook-receiver/definitions.h"
#include "services/webhook-receiver/inbound_keys.h"
#include "services/webhook-receiver/rejected.h"
#include "services/webhook-receiver/sns_link.h"

enum {
    CALLBACK_BODY_MAX = 4 * 1024 * 1024,
    CALLBACKS_MAX = 256
}; // waiting for JetStream's ack or for SNS; beyond it 503

typedef struct CallbackEndpoint {
    Bus *bus;
    MasterKey *master;
    const InboundKeys *keys;
    Definitions *definitions;
    SnsLink *sns;
    Rejected rejected;
    Str public_url;    // of this service; empty: not known, so no vendor that signs it is heard
    size_t part_max;   // of a body that one message holds
    int64_t max_age_s; // of the signed time; 0: any
    bool (*ready)(void *ctx);
    void *ready_ctx;
    Metric *taken;
    Metric *refused;
    Metric *fitted[INBOUND_KEYS_MAX]; // by the key's place in the tenant's list
    size_t waiting;
} CallbackEndpoint;

void callback_init(CallbackEndpoint *endpoint, Metrics *metrics); // of one with its bus

// After the headers: checks path, method, capability, headers. false: answered.
bool callback_admit(CallbackEndpoint *endpoint, HttpRequest *request);
void callback_handle(
    CallbackEndpoint *endpoint, HttpRequest *request); // an admitted request, with its body

typedef struct CallbackRoute {
    Str tenant;
    const VendorCallback *vendor;
    Str name;       // the vendor's
    Str capability; // empty: the path has none
} CallbackRoute;
// "/v1/inbound/<tenant>/<vendor>[/<capability>]" of a known vendor. false: not such a path.
bool callback_route(Str path, CallbackRoute *ret);
