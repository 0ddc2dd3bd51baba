// SPDX-License-Identifier: Apache-2.0
// GET /v1/scheduled: what waits for a time, and POST /v1/notifications/{id}/cancel: one of it does
// not go out. Law: cancelled and never sent, or 409 and it is due; decided by one commit in
// Postgres, where the scheduler claims what is due.
#pragma once

#include "common/api/api.h"
#include "common/db/db.h"

typedef struct ScheduledApi {
    DbPool *pool;
} ScheduledApi;

void scheduled_api_add(Api *api, ScheduledApi *scheduled); // borrows it
