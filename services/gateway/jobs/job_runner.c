// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/jobs/job_runner.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/crash.h"
#include "common/base/log.h"
#include "common/ticks/ticks.h"
#include "services/gateway/jobs/audit_process.h"
#include "services/gateway/jobs/job_child.h"
#include "services/gateway/jobs/shadow_process.h"

enum {
    TICK_MS = 1000,
    LOOK_US = 5 * 1000000,
    RETRY_US = 2 * 1000000,
    PROGRESS_SIZE = 512,
    KEEP_US = JOB_LEASE_S * 1000000 / 4,
};

typedef enum RunnerState {
    RUNNER_IDLE,
    RUNNER_CLAIMING,
    RUNNER_RUNNING, // the child lives
    RUNNER_ENDING,  // it has ended, which the row does not say yet
    RUNNER_STOPPED,
} RunnerState;

struct JobRunner {
    JobRunnerOptions options;
    RunnerState state;
    uv_timer_t tick;
    int64_t next_us; // monotonic: of the next look, or of another try to end
    Arena *arena;    // of the job
    const char *id;
    int32_t tries;
    JobChild *child;
    int64_t deadline_us, keep_us;
    bool keeping, submitted;      // a statement is under way
    bool lost;                    // the lease is another's
    bool expired;                 // the child was ended for its time
    char progress[PROGRESS_SIZE]; // what the child said last; "": nothing yet
    const char *end_state, *result, *error;
    bool stopping;
    void (*on_stopped)(void *ctx);
    void *stopped_ctx;
};

// clang-format off
static const DbStatement CLAIM = {"job_claim",
    "SELECT id, tenant_id, kind, parameters, tries FROM gateway.claim_job($1::int4, $2::int4, $3::int4, $4::text[])"};
static const DbStatement KEEP = {"job_keep", "SELECT gateway.keep_job($1::text, $2::int4, $3::int4, $4::text)"};
static const DbStatement END = {"job_end",
    "SELECT gateway.end_job($1::text, $2::int4, $3::text, $4::text, $5::text)"};
// clang-format on

// A job's kind, and the child that does it.
static const struct {
    const char *kind, *argument;
    bool reads_keys;
} kinds[] = {{"audit", AUDIT_ARGUMENT, false}, {"shadow", SHADOW_ARGUMENT, true}};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static void end_job(JobRunner *runner);

// ---- stopping ----

static void on_tick_closed(uv_handle_t *handle)
{
    JobRunner *runner = handle->data;
    runner->on_stopped(runner->stopped_ctx);
}

static void finish_if_stopping(JobRunner *runner)
{
    if (runner->stopping && runner->state == RUNNER_IDLE && !runner->keeping) {
        runner->state = RUNNER_STOPPED;
        uv_close((uv_handle_t *)&runner->tick, on_tick_closed);
    }
}

static void go_idle(JobRunner *runner, int64_t after_us)
{
    arena_free(runner->arena);
    runner->arena = NULL;
    runner->child = NULL;
    runner->state = RUNNER_IDLE;
    runner->next_us = clock_mono_us() + after_us;
    finish_if_stopping(runner);
}

// ---- the end of a job ----

static void on_job_ended(void *ctx, DbTxn *txn, const Error *err)
{
    JobRunner *runner = ctx;
    (void)txn;
    runner->submitted = false;
    if (err != NULL && !runner->stopping) {
        runner->next_us = clock_mono_us() + RETRY_US; // until the lease is another's
        return;
    }
    if (err == NULL) {
        LOG(LOG_INFO, "a job has ended", log_text("job", runner->id),
            log_text("state", runner->end_state), log_int("try", runner->tries));
    }
    go_idle(runner, 0);
}

static void optional(DbParams *p, const char *text)
{
    if (text != NULL) {
        db_text(p, str_from(text));
    } else {
        db_null(p);
    }
}

static void end_job(JobRunner *runner)
{
    runner->submitted = true;
    DbTxn *txn = db_txn_new(runner->options.pool);
    DbParams *p = db_txn_add(txn, &END, NULL);
    db_text(p, str_from(runner->id));
    db_i32(p, runner->tries);
    db_text(p, str_from(runner->end_state));
    optional(p, runner->result);
    optional(p, runner->error);
    db_txn_submit(txn, on_job_ended, runner);
}

static void decide_end(JobRunner *runner, const JobChildEnd *end)
{
    runner->end_state = "failed";
    runner->result = NULL;
    runner->error = NULL;
    if (runner->stopping) {
        runner->end_state = "waiting";
    } else if (runner->expired) {
        runner->error = arena_printf(
            runner->arena, "it took longer than %d s; ask for a shorter span", (int)JOB_MAX_S);
    } else if (end->result != NULL) {
        runner->end_state = "done";
        runner->result = arena_cstr(runner->arena, str_from(end->result));
    } else {
        runner->error = arena_cstr(runner->arena, str_from(end->error));
    }
}

static void on_child_ended(void *ctx, const JobChildEnd *end)
{
    JobRunner *runner = ctx;
    CRASH_POINT_IF("job.ended", end->result != NULL);
    runner->state = RUNNER_ENDING;
    if (runner->lost) {
        go_idle(runner, LOOK_US);
        return;
    }
    decide_end(runner, end);
    end_job(runner);
}

// ---- the lease ----

static void on_kept(void *ctx, DbTxn *txn, const Error *err)
{
    JobRunner *runner = ctx;
    runner->keeping = false;
    bool lost = err == NULL && db_get_int(db_txn_result(txn, 0), 0, 0) == 0;
    if (lost && runner->state == RUNNER_RUNNING) {
        LOG(LOG_WARN, "a job is no longer this process's: it was cancelled, or its lease has ended",
            log_text("job", runner->id));
        runner->lost = true;
        job_child_kill(runner->child);
    }
    finish_if_stopping(runner);
}

static void keep(JobRunner *runner, int64_t now_us)
{
    if (runner->keeping || now_us < runner->keep_us) {
        return;
    }
    runner->keeping = true;
    runner->keep_us = now_us + KEEP_US;
    DbTxn *txn = db_txn_new(runner->options.pool);
    DbParams *p = db_txn_add(txn, &KEEP, NULL);
    db_text(p, str_from(runner->id));
    db_i32(p, runner->tries);
    db_i32(p, JOB_LEASE_S);
    optional(p, runner->progress[0] != '\0' ? runner->progress : NULL);
    db_txn_submit(txn, on_kept, runner);
}

static void on_child_progress(void *ctx, const char *progress)
{
    JobRunner *runner = ctx;
    if (strlen(progress) < sizeof runner->progress) {
        (void)str_to_c(str_from(progress), runner->progress, sizeof runner->progress);
        runner->keep_us = 0; // at the next tick
    }
}

// ---- the beginning of one ----

static size_t kind_of(Str name)
{
    size_t kind = 0;
    while (kind + 1 < KINDS && !str_eq(name, str_from(kinds[kind].kind))) {
        kind++;
    }
    return kind; // it was claimed by these names
}

static void start(JobRunner *runner, Str kind_name, Str tenant, Str parameters)
{
    const JobRunnerOptions *o = &runner->options;
    size_t kind = kind_of(kind_name);
    const JobChildOptions options = {
        .loop = o->loop,
        .argument = kinds[kind].argument,
        .input = arena_printf(
            runner->arena, "{\"tenant\":\"" STR_FMT "\",\"parameters\":" STR_FMT "}",
            STR_ARG(tenant), STR_ARG(parameters)),
        .database_url = o->database_url,
        .master_key_file = kinds[kind].reads_keys ? o->master_key_file : NULL,
        .epoch_folder = o->epoch_folder,
        .nats = o->nats,
        .output_max = JOB_RESULT_MAX,
        .on_progress = on_child_progress,
        .on_ended = on_child_ended,
        .ctx = runner,
    };
    int64_t now_us = clock_mono_us();
    runner->state = RUNNER_RUNNING;
    runner->lost = runner->expired = false;
    runner->progress[0] = '\0';
    runner->deadline_us = now_us + JOB_MAX_S * INT64_C(1000000);
    runner->keep_us = now_us + KEEP_US;
    LOG(LOG_INFO, "a job begins", log_text("job", runner->id), log_int("try", runner->tries));
    runner->child = job_child_new(&options);
}

static void on_claimed(void *ctx, DbTxn *txn, const Error *err)
{
    JobRunner *runner = ctx;
    const PGresult *rows = err == NULL ? db_txn_result(txn, 0) : NULL;
    if (rows == NULL || db_rows(rows) == 0) {
        go_idle(runner, LOOK_US);
        return;
    }
    CRASH_POINT("job.claimed");
    runner->arena = arena_new(0);
    runner->id = arena_cstr(runner->arena, db_get_text(rows, 0, 0));
    runner->tries = (int32_t)db_get_int(rows, 0, 4);
    start(runner, db_get_text(rows, 0, 2), db_get_text(rows, 0, 1), db_get_text(rows, 0, 3));
    if (runner->stopping) {
        job_child_kill(runner->child);
    }
}

// Not while the answer about another job's lease is still to come.
static void claim(JobRunner *runner)
{
    if (runner->keeping || runner->stopping) {
        return;
    }
    runner->state = RUNNER_CLAIMING;
    DbTxn *txn = db_txn_new(runner->options.pool);
    DbParams *p = db_txn_add(txn, &CLAIM, NULL);
    db_i32(p, JOB_LEASE_S);
    db_i32(p, JOB_TRIES);
    db_i32(p, JOBS_AT_ONCE);
    DbArray *names = db_array(p, DB_TEXT);
    for (size_t i = 0; i < KINDS; i++) {
        db_push_text(names, str_from(kinds[i].kind));
    }
    db_txn_submit(txn, on_claimed, runner);
}

static void on_tick(uv_timer_t *timer)
{
    ticks_keep(timer);
    JobRunner *runner = timer->data;
    int64_t now_us = clock_mono_us();
    if (runner->state == RUNNER_IDLE && now_us >= runner->next_us) {
        claim(runner);
    } else if (runner->state == RUNNER_ENDING && !runner->submitted && now_us >= runner->next_us) {
        end_job(runner);
    } else if (runner->state == RUNNER_RUNNING) {
        keep(runner, now_us);
        if (now_us >= runner->deadline_us && !runner->expired) {
            runner->expired = true;
            job_child_kill(runner->child);
        }
    }
}

// ---- life ----

JobRunner *job_runner_new(const JobRunnerOptions *options)
{
    JobRunner *runner = xcalloc(1, sizeof *runner);
    runner->options = *options;
    runner->tick.data = runner;
    (void)uv_timer_init(options->loop, &runner->tick);
    ticks_start(&runner->tick, on_tick, TICK_MS);
    return runner;
}

void job_runner_soon(JobRunner *runner)
{
    if (runner->state == RUNNER_IDLE) {
        claim(runner);
    }
}

void job_runner_stop(JobRunner *runner, void (*on_stopped)(void *ctx), void *ctx)
{
    runner->stopping = true;
    runner->on_stopped = on_stopped;
    runner->stopped_ctx = ctx;
    if (runner->state == RUNNER_RUNNING) {
        job_child_kill(runner->child);
    } else if (runner->state == RUNNER_ENDING && !runner->submitted) {
        end_job(runner);
    }
    finish_if_stopping(runner);
}

void job_runner_free(JobRunner *runner)
{
    free(runner);
}
