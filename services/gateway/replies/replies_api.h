// SPDX-License-Identifier: Apache-2.0
// GET /v1/replies: what recipients wrote back, opened for the tenant's application, in the order in
// which it came, with the notification that it answers where that is known. A reply is named by its
// sequence in REPLIES, which a subscriber of that stream has with each message.
#pragma once

#include "common/api/api.h"
#include "common/bus/jetstream/bus.h"
#include "common/codec/seal.h"
#include "common/db/db.h"

enum { REPLIES_LIMIT = 50, REPLIES_LIMIT_MAX = 200 };

typedef struct RepliesApi {
    Bus *bus;
    MasterKey *master;
    DbPool *pool; // whose ledger knows which notification a reply answers
} RepliesApi;

void replies_api_add(Api *api, RepliesApi *replies); // borrows it
