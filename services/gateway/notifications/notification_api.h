// SPDX-License-Identifier: Apache-2.0
// GET /v1/notifications/{id}: where a notification stands. Law: never 404 after a 202 while the
// accept log has the request. History is asked first; until it has the notification, the accept
// log shows what was accepted. Whose month is archived is 404 with the unit's name. Accepting is
// ingest's.
#pragma once

#include "common/api/api.h"
#include "common/db/db.h"
#include "services/gateway/notifications/notification_view.h"
#include "services/gateway/why/why_read.h"

typedef struct NotificationApi {
    NotificationPools pools;
    NotificationQueue queue; // of the pools
    NotificationWait waits[CHANNEL_COUNT]; // by channel
    const WhyReader *why;                  // for ?include=why
} NotificationApi;

void notification_api_add(Api *api, NotificationApi *notifications); // borrows it
// An entry of CONFIG's kind channel_health; key "email_smtp", payload empty: removed.
void notification_api_changed(NotificationApi *notifications, Str key, Str payload);
