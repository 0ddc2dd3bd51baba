// SPDX-License-Identifier: Apache-2.0
// One batch that this process holds: its life, and what ends it. What it does next is batch_run.c.
#pragma once

#include <jansson.h>

#include "common/campaign/batch_chunk.h"
#include "common/campaign/batch_sql.h"
#include "common/model/rules/pace.h"
#include "services/ingest/batches/batch_run.h"

enum {
    LOOK_MS = 500,       // between two claims
    LOOK_IDLE_MS = 2000, // while none runs here: one that is started here wakes it
    ROOM_MS = 20,        // before another look at whether there is room
    TROUBLE_MS = 500,    // after Postgres or accept did not answer
    SUSPENDED_MS = 1000, // before another look at whether the tenant may send
    RENEWALS = 3,        // of a lease, before it would end
};

// One batch that this process holds.
typedef struct Run {
    struct Run *next;
    BatchRunner *runner;
    Arena *arena; // of the batch itself
    BatchRow row;
    Pace pace;
    json_t *variables; // the batch's own; NULL: none
    Arena *chunk;      // of the chunk that is being worked at; NULL: none is loaded
    Member *members;
    size_t count;
    int64_t first_index;
    int64_t begun_at_us;
    Arena *step; // of the submission in flight
    Submission submission;
    char page_after[ID_SIZE]; // of the page of members that is being stored (run_choose.h)
    bool page_ended;
    char chosen_after[ID_SIZE];
    int64_t wait_until_us; // of clock_mono_us
    int64_t renew_at_us;
    bool in_air; // an accept or a transaction will call back
    bool over;   // to be dropped
} Run;

struct BatchRunner {
    BatchRunnerOptions options;
    Run *runs;
    int run_count;
    size_t waiting; // members in accept
    int64_t look_at_us;
    bool looking;
    bool stopping;
    Metric *accepted;
    Metric *running;
};

void run_advance(Run *run); // batch_run.c: whatever is next, unless something is in the air
void run_drop_chunk(Run *run);
void run_free(Run *run);
void runs_sweep(BatchRunner *r);
void run_wait_ms(Run *run, int64_t ms);
DbTxn *run_begin(const Run *run);
Str run_holder(const Run *run);
// Gives the batch up; whoever looks next may have it.
void run_release(Run *run);
void run_fail(Run *run, const char *reason);
// false: it waits, or has failed because its tenant is being deleted.
bool run_tenant_sends(Run *run);
// After a transaction that did not go through: false, and the run waits or ends.
bool run_went_through(Run *run, const Error *err);
// The answer of a checkpoint or a renewal: false: it is no longer ours to run.
bool run_may_go_on(Run *run, const PGresult *res);
