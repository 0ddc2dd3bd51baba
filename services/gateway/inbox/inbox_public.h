// SPDX-License-Identifier: Apache-2.0
// /v1/inbox, for a recipient's client: a token in the Authorization header (inbox_token.h), and
// nothing else, says whose inbox it is. POST /v1/inbox/tokens, which makes tokens, is a route of
// the API (inbox_tokens.h).
#pragma once

#include "common/bus/jetstream/bus.h"
#include "common/config/inbox_keys.h"
#include "common/db/keyring.h"
#include "common/feed/inbox_token.h"
#include "common/http/server.h"
#include "common/recipients/people_wait.h"
#include "common/request/catalog.h"
#include "common/service/metrics.h"
#include "services/gateway/inbox/inbox_origins.h"
#include "services/gateway/live/inbox_streams.h"
#include "services/gateway/preferences/preference_change.h"

typedef struct InboxPublic {
    Bus *bus;
    DbPool *pool;
    Keyring *keyring;
    const MasterKey *master;
    const Catalog *catalog;
    const InboxOrigins *origins; // of pages that may call it
    const PreferenceParts *preferences;
    const InboxKeys *keys; // of tenants' own servers
    PeopleWait *wait;      // for the projection of FEED
    InboxStreams *streams;
    const char *(*unready)(void *ctx);
    void *unready_ctx;
    Metric *shown, *stored, *refused;
} InboxPublic;

void inbox_public_init(InboxPublic *inbox, Metrics *metrics); // the counters
bool inbox_is_path(Str path);
bool inbox_public_admit(InboxPublic *inbox, HttpRequest *request);  // an HttpAdmit
void inbox_public_handle(InboxPublic *inbox, HttpRequest *request); // an HttpHandler

extern const DbStatement inbox_position_sql; // of people_wait_new(): how far FEED is folded
