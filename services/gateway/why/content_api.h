// SPDX-License-Identifier: Apache-2.0
// GET /v1/notifications/{id}/content: what its recipient was sent, unsealed. The order is the law:
// found, opened, noted in the audit log, shown; what cannot be noted is not shown.
#pragma once

#include "common/api/api.h"
#include "common/auditlog/audit_append.h"
#include "common/db/keyring.h"
#include "services/gateway/notifications/notification_read.h"
#include "services/gateway/why/stream_scan.h"

typedef struct ContentApi {
    NotificationPools pools;
    StreamScans *scans;
    Keyring *keyring;
    AuditLog *audit;
} ContentApi;

void content_api_add(Api *api, ContentApi *content); // borrows it
