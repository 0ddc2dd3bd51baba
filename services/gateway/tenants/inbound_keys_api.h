// SPDX-License-Identifier: Apache-2.0
// /v1/tenant/inbound-keys/{vendor}: the keys with which a vendor proves that it is the one that
// reports to a tenant, and the path that the vendor is given. Only the operator puts and sees them:
// whoever can could report for the vendor.
#pragma once

#include "common/api/api.h"
#include "common/bus/jetstream/bus.h"
#include "common/codec/seal.h"

typedef struct InboundKeysApi {
    Bus *bus;
    const MasterKey *master; // makes the path's capability
} InboundKeysApi;

void inbound_keys_api_add(Api *api, InboundKeysApi *keys);
