// SPDX-License-Identifier: Apache-2.0
// What ingest counts. Registered once at start; every part updates its own.
#pragma once

#include "common/api/api_metrics.h"

// What became of an application's event on its way into EVENTS.
typedef enum IntakeMetric {
    INTAKE_STORED,
    INTAKE_REPEATED, // EVENTS had it already
    INTAKE_REFUSED,
    INTAKE_UNAVAILABLE,
    INTAKE_COUNT
} IntakeMetric;

typedef struct IngestMetrics {
    Metric *accepted;
    ApiMetrics api;
    Metric *suppressed; // by the gate, of those accepted; the same with the next two
    Metric *deferred;
    Metric *gathered; // into digests
    Metric *lowered;  // beyond their tenant's share, so on a lower lane
    Metric *replayed;
    Metric *commit_seconds;
    Metric *batch_size;
    Metric *waiting;   // notifications that wait for their commit
    Metric *published; // events acknowledged by JetStream
    Metric *publish_failed;
    Metric *swept;       // accept rows taken over by the sweep
    Metric *unpublished; // accept rows of this process whose events are on their way
    Metric *intake[INTAKE_COUNT];
    Metric *clear_copied; // events in clear: sealed copies stored; the next three are its fellows
    Metric *clear_erased; // originals
    Metric *clear_waiting;
    Metric *clear_oldest_seconds;
    Metric *commands;
    Metric *commands_ignored;
    Metric *trigger_events;  // that some trigger wanted
    Metric *triggered;       // notifications made by triggers
    Metric *trigger_late;    // triggers that came too late to send anything
    Metric *trigger_failed;  // triggers that have a dead letter
    Metric *trigger_cancels; // cancellations published
    Metric *resent; // failed mails that an event had sent again; the next three are its fellows
    Metric *resend_repeated; // the same event again
    Metric *resend_gone;     // an operator had sent it again, or dropped its dead letter
    Metric *resend_refused;
} IngestMetrics;

void ingest_metrics_init(IngestMetrics *m, Metrics *metrics);
