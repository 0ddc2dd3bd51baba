// SPDX-License-Identifier: Apache-2.0
// POST /v1/notifications: checks the idempotency key, the body and the template, hands what is
// right to accept and answers when it is committed.
#pragma once

#include "common/api/api.h"
#include "common/codec/master_key.h"
#include "common/model/channel_set.h"
#include "common/routing/routes.h"
#include "services/ingest/accept/accept.h"

typedef struct NotificationsApi {
    Accept *accept;
    DbPool *pool;
    const Catalog *catalog;
    ChannelSet delivered; // the channels that have a vendor
    const Routes *routes; // whose credentials give a tenant more of them
    IngestMetrics *metrics;
    MasterKey *master;       // opens the ids of attachments
    int64_t attachments_max; // bytes of all of one mail
} NotificationsApi;

void notifications_api_add(Api *api, NotificationsApi *notifications); // borrowed
