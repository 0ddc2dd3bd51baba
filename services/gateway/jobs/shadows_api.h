// SPDX-License-Identifier: Apache-2.0
// POST /v1/templates/{key}/shadow and /v1/shadows: what would a version have made of the past
// requests of its template? A job (job_runner.h) of the call's tenant, one at a time.
#pragma once

#include "common/api/api.h"
#include "common/db/db.h"
#include "services/gateway/jobs/job_runner.h"

enum {
    SHADOW_DAYS = 7,
    SHADOW_DAYS_MAX = 30, // requests are kept so long
    SHADOW_LIMIT = 10000,
    SHADOW_LIMIT_MAX = 100000,
};

typedef struct ShadowsApi {
    DbPool *pool;
    JobRunner *runner;
    const Catalog *catalog;
} ShadowsApi;

void shadows_api_add(Api *api, ShadowsApi *shadows); // borrows it
