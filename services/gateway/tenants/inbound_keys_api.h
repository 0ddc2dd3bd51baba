// SPDX-License-Identifier: Apache-2.0
// /v1/tenant/inbound-keys/{vendor}: the key with which a vendor signs what it reports to a tenant.
// Only the operator puts it: whoever can could report for the vendor.
#pragma once

#include "common/api/api.h"
#include "common/bus/jetstream/bus.h"

typedef struct InboundKeysApi {
    Bus *bus;
} InboundKeysApi;

void inbound_keys_api_add(Api *api, InboundKeysApi *keys);
