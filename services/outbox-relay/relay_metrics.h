// SPDX-License-Identifier: Apache-2.0
// The relay's metrics. Dashboards and benchmarks know their names.
#pragma once

#include "common/bus/consume/projector.h"
#include "common/db/listen.h"
#include "common/service/metrics.h"
#include "services/outbox-relay/feedback/feedback.h"
#include "services/outbox-relay/maintenance.h"
#include "services/outbox-relay/publish/batch.h"

typedef struct RelayMetrics {
    Metric *claimed, *published, *marked, *refused, *left, *adopted, *deleted, *woken;
    Metric *feedback[FEEDBACK_COUNT];
    Metric *backlog, *claims, *refused_rows, *failed_rows;
    Metric *retried[RELAY_RETRIES_MAX + 1]; // by failed attempts, from 1
    int64_t oldest_at_us;                   // of the pending rows; 0: there are none
    const Projector *projector;             // NULL: not open
    const DbListen *listen;                 // NULL: closed
} RelayMetrics;

void relay_metrics_init(RelayMetrics *m, Metrics *metrics);
void relay_metrics_claimed(RelayMetrics *m, const BatchClaim *claim);
void relay_metrics_ended(RelayMetrics *m, const BatchEnd *end);
void relay_metrics_feedback(RelayMetrics *m, const size_t counts[FEEDBACK_COUNT]);
void relay_metrics_counted(RelayMetrics *m, const MaintenanceBacklog *backlog);
void relay_metrics_tallied(RelayMetrics *m, const MaintenanceTally *tally);
