// SPDX-License-Identifier: Apache-2.0
// What an HTTP surface counts by itself: the requests that it refuses, by the reason. Commands on
// NATS are refused for the same reasons and counted in the same rows.
#pragma once

#include "common/service/metrics.h"

typedef enum Refusal {
    REFUSED_MALFORMED,
    REFUSED_INVALID,
    REFUSED_UNAUTHORIZED,
    REFUSED_SCOPE,
    REFUSED_SUSPENDED,
    REFUSED_UNKNOWN_TENANT,
    REFUSED_CONFLICT,
    REFUSED_UNAVAILABLE,
    REFUSED_QUOTA,
    REFUSED_COUNT
} Refusal;

typedef struct ApiMetrics {
    Metric *refused[REFUSED_COUNT];
} ApiMetrics;

// name: of the counter, "stentor_ingest_refused_total"; the reason is its label.
void api_metrics_init(ApiMetrics *m, Metrics *metrics, const char *name);
