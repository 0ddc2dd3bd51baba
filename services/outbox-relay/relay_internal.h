// SPDX-License-Identifier: Apache-2.0
// What relay.c and feedback/requests.c share.
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
    const char *streams[2 * ACCOUNT_TENANTS_MAX + 1]; // what the projector reads; ends with NULL
    char stream_texts[2 * ACCOUNT_TENANTS_MAX][SUBJECT_SIZE];
    Projector *projector;          // of requests, once the table is checked
    FeedbackRetry *feedback_retry; // of requests
    int feedback_tries;            // of what is folded
    bool feedback_aside;           // how it was written the last time
    bool feedback_refused;         // and since then nothing was written
    int64_t aside_until_us;        // monotonic
    uv_timer_t check_timer;
    bool checked; // the table has been found as the mapping says
    bool checking;
    bool stopping;
    int parts_stopped; // how far the stop has come
    int check_ms;
    Error trouble; // what stands in the way now; ERROR_NONE: nothing
    RelayMetrics metrics;
} Relay;

// Nothing before the first letter can be about one: a new mapping does not read the whole log.
void relay_open_projector(Relay *relay, int64_t oldest_request_us);
// What the relay reads of its tenants' mails: all of STATUS and DEAD, or of each tenant its own.
bool relay_plan_streams(Relay *relay, Error *err);
