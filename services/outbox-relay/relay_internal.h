// SPDX-License-Identifier: Apache-2.0
// Shared by relay.c and feedback/feedback_projector.c.
#pragma once

#include "common/bus/consume/projector.h"
#include "common/bus/topology/accounts.h"
#include "common/bus/topology/topology.h"
#include "common/db/listen.h"
#include "services/outbox-relay/feedback/feedback.h"
#include "services/outbox-relay/feedback/feedback_retry.h"
#include "services/outbox-relay/maintenance.h"
#include "services/outbox-relay/publish/drain.h"
#include "services/outbox-relay/relay.h"
#include "services/outbox-relay/relay_metrics.h"

typedef struct RelayOptions {
    const char *mapping_file;
    const char *tenants;
    const char *domain;
    int64_t batch_rows;
    int64_t batches;
    int64_t lease_ms;
    int64_t poll_ms;
    int64_t keep_ms;
} RelayOptions;

typedef struct Relay {
    Service *service;
    const RelayOptions *options;
    Mapping *mapping;
    RelaySql *sql;
    BatchContext context;
    Drain *drain;
    Maintenance *maintenance;
    DbListen *listen;
    Feedback *feedback;
    char projection[MAPPING_NAME_MAX + 16];
    const char *streams[2 * ACCOUNT_TENANTS_MAX + 1]; // read by the projector; ends with NULL
    char stream_texts[2 * ACCOUNT_TENANTS_MAX][SUBJECT_SIZE];
    Projector *projector;          // of requests, once the table is checked
    FeedbackRetry *feedback_retry; // of requests
    int feedback_tries;            // of the folded events
    bool feedback_aside;           // the last try left the rows to the retry
    bool feedback_refused;         // and no write has succeeded since
    int64_t aside_until_us;        // monotonic
    uv_timer_t check_timer;
    bool checked; // the table matches its mapping
    bool checking;
    bool stopping;
    int parts_stopped; // of on_part_stopped
    int check_ms;
    Error trouble; // why nothing can be claimed now; ERROR_NONE: it can
    RelayMetrics metrics;
} Relay;

// A new mapping reads STATUS from its first request on: nothing before can concern it.
void relay_open_projector(Relay *relay, int64_t oldest_request_us);
// Which subjects the relay reads: all of STATUS and DEAD, or those of its tenants only.
bool relay_plan_streams(Relay *relay, Error *err);
