// SPDX-License-Identifier: Apache-2.0
// Runs jobs (migrations/gateway, jobs) one after the other, each in a child process of its own: it
// blocks, so the service's loop does not, and dies with the service. A claim looks for the next job
// every few seconds, and at once after job_runner_soon().
//
// Law: a job is run under a lease that is kept up while its child lives, for JOB_MAX_S at most. A
// process that is killed lets the lease end, and another replica takes the job over, JOB_TRIES
// times in all; then it has failed and says so. Whoever lost a lease ends nothing: also a job that
// was cancelled (gateway.cancel_job) is no longer its process's, which ends the child.
#pragma once

#include "common/db/db.h"
#include "common/service/service.h"

enum {
    JOB_TRIES = 3,
    JOBS_AT_ONCE = 2, // of all replicas
    JOB_LEASE_S = 20,
    JOB_MAX_S = 600,
    JOB_RESULT_MAX = 512 * 1024,
};

typedef struct JobRunner JobRunner;

typedef struct JobRunnerOptions {
    uv_loop_t *loop;
    DbPool *pool;
    const char *database_url; // borrowed, for the child, as the following
    const char *master_key_file, *epoch_folder;
    ServiceNats nats;
} JobRunnerOptions;

JobRunner *job_runner_new(const JobRunnerOptions *options);
void job_runner_soon(JobRunner *runner);
// Ends the child; its job waits again.
void job_runner_stop(JobRunner *runner, void (*on_stopped)(void *ctx), void *ctx);
void job_runner_free(JobRunner *runner); // after on_stopped; NULL-safe
