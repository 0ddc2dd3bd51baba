// SPDX-License-Identifier: Apache-2.0
// The saga's metrics.
#pragma once

#include "common/orders/machine.h"
#include "common/service/metrics.h"

typedef struct SagaMetrics {
    Metric *passed;                      // events that do not concern orders
    Metric *verdicts[VERDICT_COUNT];     // messages, by verdict
    Metric *started;                     // sagas
    Metric *finished[ORDER_STATE_COUNT]; // by their end
    Metric *retries;
    Metric *waits_repeated;
    Metric *withheld;
    Metric *lost; // orders that another process wrote first
    Metric *duration_seconds;
    Metric *processing_seconds;
    Metric *published;
    Metric *repeats_dropped; // of the published: dropped by the stream as repeats
    Metric *publish_failed;
    Metric *swept;
    Metric *outbox_seconds;
    Metric *retained[4]; // rows, by the step of the retention
    Metric *passes;
    Metric *retained_at; // when the last pass was completed
} SagaMetrics;

void saga_metrics_register(SagaMetrics *m, Metrics *metrics);
