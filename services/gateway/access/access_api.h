// SPDX-License-Identifier: Apache-2.0
// Who may, and what is kept of it: GET /v1/me, /v1/audit-log, the console's
// logins and sessions. (services/gateway/ACCESS.md)
#pragma once

#include "services/gateway/access/audit_log_api.h"
#include "services/gateway/access/console_logins.h"
#include "services/gateway/access/console_public.h"

typedef struct AccessApi {
    AuditLogApi audit_log;
    ConsoleLogins logins;
    ConsolePublic console; // its times are filled in before access_api_add
} AccessApi;

void access_api_add(Api *api, AccessApi *access, Bus *bus);
void access_api_tick(AccessApi *access);
bool access_api_idle(const AccessApi *access); // nothing is being read
