// SPDX-License-Identifier: Apache-2.0
// Every process by its heartbeats (common/service/heartbeat.h). One that was not heard for three of
// them is down, and forgotten after a minute. Time is an argument.
#pragma once

#include <jansson.h>

#include "common/base/str.h"

enum { OPS_PROCESSES_MAX = 1024, OPS_DOWN_MS = 6500, OPS_FORGET_MS = 60 * 1000 };

typedef struct OpsProcesses OpsProcesses;

typedef enum OpsState { OPS_READY, OPS_NOT_READY, OPS_DOWN, OPS_STATE_COUNT } OpsState;

const char *ops_state_name(OpsState state); // "ready", "not-ready", "down"

OpsProcesses *ops_processes_new(void);
void ops_processes_free(OpsProcesses *processes);
// A heartbeat. false: it is none, or there are too many processes.
bool ops_processes_heard(OpsProcesses *processes, Str json, int64_t now_us);
void ops_processes_forget(OpsProcesses *processes, int64_t now_us);

// Of one service all together. lag: the longest of those that are not down; below 0: none says one.
typedef struct OpsService {
    size_t count[OPS_STATE_COUNT];
    double handled_per_s, published_per_s;
    double p99_ms; // the slowest of any histogram but the loop's and Postgres'; below 0: not known
    double lag;
} OpsService;

OpsService ops_processes_sum(const OpsProcesses *processes, const char *service, int64_t now_us);
json_t *ops_processes_json(const OpsProcesses *processes, int64_t now_us); // an array
