// SPDX-License-Identifier: Apache-2.0
// POST and GET /v1/ops/audits, GET /v1/ops/audits/{id}: the reconciliation of every record as a job
// (job_runner.h). An operator's key that names no tenant asks for all tenants; a job is its
// tenant's.
#pragma once

#include "common/api/api.h"
#include "common/db/db.h"
#include "services/gateway/jobs/job_runner.h"

enum {
    AUDIT_DAYS = 7,    // of one audit: it reads every stream from there on
    JOBS_OPEN_MAX = 5, // of a tenant
};

typedef struct AuditsApi {
    DbPool *pool;
    JobRunner *runner;
} AuditsApi;

void audits_api_add(Api *api, AuditsApi *audits); // borrows it
