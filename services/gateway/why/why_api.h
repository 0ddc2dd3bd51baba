// SPDX-License-Identifier: Apache-2.0
// GET /v1/notifications/{id}/why and .../content, and POST /v1/recipients/{id}/explain.
#pragma once

#include "common/api/api.h"
#include "common/codec/master_key.h"
#include "services/gateway/why/content_api.h"
#include "services/gateway/why/explain.h"
#include "services/gateway/why/why_read.h"

typedef struct WhyOptions {
    Bus *bus;
    NotificationPools pools;
    const MasterKey *master;
    const Catalog *catalog;
    const Suppressions *suppressions;
    const NotificationWait *waits; // by channel
    Keyring *keyring;
    AuditLog *audit;
} WhyOptions;

typedef struct WhyApi {
    WhyReader reader;
    StreamScans scans;
    ExplainApi explain;
    ContentApi content;
} WhyApi;

void why_api_init(WhyApi *why, const WhyOptions *options);
void why_api_add(Api *api, WhyApi *why); // borrows it
