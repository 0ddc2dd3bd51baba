// SPDX-License-Identifier: Apache-2.0
// /v1/api-keys: the keys of the caller's tenant. They are kept in memory as the mirror brings them,
// with the sequence that a change replaces. Law: who manages keys makes, shows and ends only such
// as may no more than its own key, for no longer and from no other addresses; an operator's key is
// made by an operator's key, or by `stentor apikey bootstrap`.
#pragma once

#include "common/api/api.h"
#include "common/bus/jetstream/bus.h"
#include "services/gateway/tenants/key_last_use.h"

typedef struct ApiKeysApi ApiKeysApi;

// `last` is copied.
ApiKeysApi *api_keys_api_new(Bus *bus, Auth *auth, const Catalog *catalog, const KeyLastUse *last);
void api_keys_api_free(ApiKeysApi *keys);
// The entry changed, as `auth` has taken it already.
void api_keys_api_changed(ApiKeysApi *keys, Str tenant, Str key_id, Str payload, uint64_t sequence);
void api_keys_api_add(Api *api, ApiKeysApi *keys);
