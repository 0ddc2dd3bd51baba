// SPDX-License-Identifier: Apache-2.0
// POST /v1/link-revocations: links in mails (unsubscribe, preferences, tracked) that are valid no
// more, of a notification, a recipient, an address, or all of the tenant's before a time. An entry
// of CONFIG (common/config/link_revocations.h); a later call about the same replaces it, but what
// an erasure revoked stays revoked.
#pragma once

#include "common/api/api.h"
#include "common/bus/jetstream/bus.h"
#include "common/codec/master_key.h"

typedef struct LinkRevocationsApi {
    Bus *bus;
    HashKeys hash_keys; // of addresses
} LinkRevocationsApi;

void link_revocations_api_add(Api *api, LinkRevocationsApi *revocations);
