// SPDX-License-Identifier: Apache-2.0
// /v1/inbox/keys: with these keys a tenant's own server signs tokens for the inboxes of its users,
// without asking the API (INBOX_TOKENS.md). A secret is shown once.
#pragma once

#include "common/api/api.h"
#include "common/bus/jetstream/bus.h"
#include "common/config/inbox_keys.h"

typedef struct InboxKeysApi {
    Bus *bus;
    MasterKey *master;
    InboxKeys *known;
} InboxKeysApi;

bool inbox_keys_is_path(Str path);
// The entry that CONFIG has now; what cannot be read is logged.
void inbox_keys_changed(InboxKeys *known, Str tenant, Str payload);
void inbox_keys_api_add(Api *api, InboxKeysApi *keys);
