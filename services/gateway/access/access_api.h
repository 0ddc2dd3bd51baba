// SPDX-License-Identifier: Apache-2.0
// Who may, and what is kept of it: GET /v1/me. (services/gateway/ACCESS.md)
#pragma once

#include "common/api/api.h"

typedef struct AccessApi {
    DbPool *pool;
} AccessApi;

void access_api_add(Api *api, AccessApi *access);
