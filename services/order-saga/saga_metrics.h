// SPDX-License-Identifier: Apache-2.0
// What the saga counts: the key figures of system D.
#pragma once

#include "common/service/metrics.h"
#include "services/order-saga/machine.h"

typedef struct SagaMetrics {
    Metric *passed;                      // events that are not the saga's
    Metric *verdicts[VERDICT_COUNT];     // messages, by what became of them
    Metric *started;                     // sagas
    Metric *finished[ORDER_STATE_COUNT]; // by their end
    Metric *retries;
    Metric *waits_repeated;
    Metric *withheld;
    Metric *lost; // orders that another process was faster with
    Metric *duration_seconds;
    Metric *processing_seconds;
    Metric *published;
    Metric *repeats_dropped; // of the published: the stream had them already
    Metric *publish_failed;
    Metric *swept;
    Metric *outbox_seconds;
    Metric *retained[4]; // rows, by the step of the retention
    Metric *passes;
    Metric *retained_at; // when the last pass ended
} SagaMetrics;

void saga_metrics_register(SagaMetrics *m, Metrics *metrics);
