// SPDX-License-Identifier: Apache-2.0
// The picture as JSON: streams, consumers, and the pipeline by stage and lane. What is not known is
// left out. Pure.
#pragma once

#include "services/gateway/ops/ops_picture.h"
#include "services/gateway/ops/ops_processes.h"

// Each {"at", ...}.
json_t *ops_streams_json(const OpsPicture *picture);
json_t *ops_consumers_json(const OpsPicture *picture);
json_t *ops_pipeline_json(const OpsPicture *picture, const OpsProcesses *processes, int64_t now_us);
