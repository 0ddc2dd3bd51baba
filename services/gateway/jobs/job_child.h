// SPDX-License-Identifier: Apache-2.0
// A child process of the gateway's own program that does one job: it gets the job as JSON on its
// standard input and answers with {"result": {...}} or {"error": "..."} on its standard output.
// Before that it may say how far it is, {"progress": {...}} on a line of its own. It frees itself
// once it has reported its end.
#pragma once

#include <uv.h>

#include "common/service/service.h"

typedef struct JobChild JobChild;

typedef struct JobChildEnd {
    const char *result; // JSON; NULL: it failed
    const char *error;  // why
} JobChildEnd;

typedef struct JobChildOptions {
    uv_loop_t *loop;
    const char *argument; // which job
    const char *input;    // copied
    const char *database_url;
    const char *master_key_file, *epoch_folder; // NULL: not the child's to read
    ServiceNats nats;
    size_t output_max;
    // Each time it says so; the JSON lives during the call. NULL: not asked for.
    void (*on_progress)(void *ctx, const char *progress);
    // Once, from the loop; the texts live during the call.
    void (*on_ended)(void *ctx, const JobChildEnd *end);
    void *ctx;
} JobChildOptions;

JobChild *job_child_new(const JobChildOptions *options); // its end is reported later, in any case
void job_child_kill(JobChild *child);                    // twice is once
