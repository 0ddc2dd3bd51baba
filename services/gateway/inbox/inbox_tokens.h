// SPDX-License-Identifier: Apache-2.0
// POST /v1/inbox/tokens: an application's server gets a token for the inbox of one of its users,
// and gives it to that user's client.
#pragma once

#include "common/api/api.h"
#include "common/db/keyring.h"

typedef struct InboxTokens {
    DbPool *pool;
    Keyring *keyring;
    const MasterKey *master;
} InboxTokens;

void inbox_tokens_add(Api *api, InboxTokens *tokens); // borrowed
