// SPDX-License-Identifier: Apache-2.0
// Figures of a span, from history: GET /v1/usage, /v1/limits, /v1/ops/deliverability, /v1/ops/slo.
// Law: no figure is kept anywhere but where it arises: each answer counts again, over
// FIGURES_DAYS at most, and is as old as history.
//
// An operator's key that names no tenant asks /v1/ops of all tenants.
#pragma once

#include "common/api/api.h"
#include "common/db/db.h"

enum { FIGURES_DAYS = 92 };

typedef struct FiguresApi {
    DbPool *pool;
    const Catalog *catalog;
} FiguresApi;

void figures_api_add(Api *api, FiguresApi *figures); // borrows it
