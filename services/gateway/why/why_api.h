// SPDX-License-Identifier: Apache-2.0
// GET /v1/notifications/{id}/why.
#pragma once

#include "common/api/api.h"
#include "services/gateway/why/why_read.h"

typedef struct WhyApi {
    WhyReader reader;
    StreamScans scans;
} WhyApi;

void why_api_init(
    WhyApi *why, Bus *bus, NotificationPools pools, const Catalog *catalog,
    const NotificationWait *waits);
void why_api_add(Api *api, WhyApi *why); // borrows it
