// SPDX-License-Identifier: Apache-2.0
// From a batch of deliveries to jobs that may be claimed: read, admitted, in turn, opened.
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/codec/event.h"
#include "common/events/sealed.h"
#include "common/ticks/ticks.h"
#include "services/dispatcher/tracing/attempt_span.h"
#include "services/dispatcher/turns.h"

enum { TURNS_MS = 100, TURNS_REST_MS = 1000 };

// ---- keys and content ----

// CONFIG has not delivered the template version or the sender's domain yet.
static bool wait_for_config(Job *job)
{
    if (job->delivery->message.delivered < TEMPLATE_DELIVERIES_MAX) {
        outcomes_redeliver(job, REDELIVER_TEMPLATE_MS);
        return false;
    }
    Error err = {0};
    error_set(
        &err, ERROR_PERMANENT,
        "version '%s' of template '%s' has not reached this dispatcher (HINT: stentor template "
        "list, then stentor dlq resend --all)",
        job->rendered->template_version, job->rendered->template_);
    outcomes_settle(job, &err);
    return false;
}

static bool open_job(JobBatch *batch, Job *job, const KeyWant *wants)
{
    Dispatcher *dispatcher = batch->dispatcher;
    arena_reset(dispatcher->scratch);
    JobOpening opening = {
        .rules = &dispatcher->parts.rules,
        .directory = dispatcher->directory,
        .vendors = dispatcher->parts.vendors,
        .attachments = dispatcher->parts.attachments,
        .now_ms = uv_now(dispatcher->parts.loop),
        .address_key = wants[0].key,
        .content_key = wants[1].key,
        .scratch = dispatcher->scratch,
        .buf = &dispatcher->buf,
        .now_us = batch->now_us,
        .patient = job->delivery->message.delivered < SENDER_DELIVERIES_MAX,
    };
    return job_open(job, &opening) || wait_for_config(job);
}

static void open_jobs(JobBatch *batch, const Error *err)
{
    size_t count = batch->count;
    size_t kept = 0;
    Job **jobs = batch->jobs;
    const KeyWant *wants = batch->wants;
    for (size_t i = 0; i < count; i++) {
        if (err != NULL) {
            outcomes_settle(jobs[i], err);
        } else if (
            open_job(batch, jobs[i], wants + 2 * i) && outcomes_move(jobs[i], JOB_CLAIMING)) {
            jobs[kept++] = jobs[i];
        }
    }
    if (kept > 0) {
        batch->count = kept;
        claim_batch(batch);
    }
}

static void on_keyring_resolved(void *ctx, const Error *err)
{
    JobBatch *batch = ctx;
    open_jobs(batch, err);
}

static void take_held(Dispatcher *dispatcher);

static void on_turns_timer(uv_timer_t *timer)
{
    Dispatcher *dispatcher = timer->data;
    take_held(dispatcher);
    uint64_t pace_ms = map_count(dispatcher->jobs) > 0 ? TURNS_MS : TURNS_REST_MS;
    if (!dispatcher->stopping) {
        ticks_start(timer, on_turns_timer, pace_ms);
    }
}

void intake_watch(Dispatcher *dispatcher)
{
    uv_timer_start(&dispatcher->turns, on_turns_timer, TURNS_MS, TURNS_MS);
}

void intake_left(Job *job)
{
    Dispatcher *dispatcher = job->owner;
    map_remove(dispatcher->jobs, job->name);
    if (job->attached > 0) {
        attachments_let_go(dispatcher->parts.attachments, job->attached);
        job->attached = 0;
    }
    turns_left(job);
    if (turns_due(job->lane) && !dispatcher->stopping) {
        uv_timer_start(&dispatcher->turns, on_turns_timer, 0, TURNS_MS);
    }
}

static bool admit(DispatcherLane *lane, Job *job, Delivery *delivery, int64_t now_us)
{
    Dispatcher *dispatcher = lane->dispatcher;
    Error err = {0};
    job->owner = dispatcher;
    job->lane = lane;
    if (!job_read(job, delivery, now_us, &err)) {
        LOG(LOG_WARN, "an event that cannot be read was moved to the dead letters",
            log_text("stream", delivery->message.stream),
            log_int("sequence", (int64_t)delivery->message.sequence), log_error(&err));
        delivery_settle(delivery, &err);
        return false;
    }
    if (map_get(dispatcher->jobs, job->name) != NULL) {
        // A repeat of an event whose first delivery is still being sent here.
        metric_add(dispatcher->metrics.returned, 1);
        delivery_redeliver(delivery, REDELIVER_SELF_MS);
        return false;
    }
    map_put(dispatcher->jobs, job->name, job);
    attempt_resume(dispatcher->parts.tracer, job);
    return true;
}

static JobBatch *make_batch(Dispatcher *dispatcher, Arena *arena, size_t room)
{
    JobBatch *batch = arena_zalloc(arena, sizeof *batch);
    batch->dispatcher = dispatcher;
    batch->now_us = clock_now_us();
    batch->jobs = arena_array(arena, room, sizeof *batch->jobs);
    batch->wants = arena_array(arena, 2 * room, sizeof *batch->wants);
    return batch;
}

static void add_job(JobBatch *batch, Job *job)
{
    if (!outcomes_move(job, JOB_OPENING)) {
        return;
    }
    batch->wants[2 * batch->count] = key_want_of(job->key->tenant, job->rendered->address);
    batch->wants[2 * batch->count + 1] = key_want_of(job->key->tenant, job->rendered->content);
    batch->jobs[batch->count++] = job;
}

static void resolve(JobBatch *batch)
{
    keyring_resolve(
        batch->dispatcher->keyring, batch->wants, 2 * batch->count, on_keyring_resolved, batch);
}

void intake_batch(DispatcherLane *lane, Delivery **deliveries, size_t count)
{
    Dispatcher *dispatcher = lane->dispatcher;
    Arena *arena = deliveries[0]->arena;
    JobBatch *batch = make_batch(dispatcher, arena, count);
    Job *jobs = arena_array(arena, count, sizeof *jobs);
    for (size_t i = 0; i < count; i++) {
        if (!admit(lane, &jobs[i], deliveries[i], batch->now_us)) {
            continue;
        }
        Turn turn = turns_take(lane, &jobs[i]);
        jobs[i].postponed = turn == TURN_POSTPONED;
        if (turn == TURN_HELD) {
            (void)outcomes_move(&jobs[i], JOB_HELD);
        } else {
            add_job(batch, &jobs[i]);
        }
    }
    if (batch->count > 0) {
        resolve(batch);
    }
}

// Continues with held jobs whose turn has come.
static void take_held(Dispatcher *dispatcher)
{
    int64_t now_us = clock_mono_us();
    for (int i = 0; i < LANES && !dispatcher->stopping; i++) {
        DispatcherLane *lane = &dispatcher->lanes[i];
        turns_update(lane, now_us);
        Job **jobs = NULL;
        size_t count;
        while ((count = turns_next(lane, dispatcher->parts.batch_max, &jobs)) > 0) {
            JobBatch *batch = make_batch(dispatcher, jobs[0]->delivery->arena, count);
            for (size_t n = 0; n < count; n++) {
                add_job(batch, jobs[n]);
            }
            resolve(batch);
        }
    }
}

void intake_give_up(Dispatcher *dispatcher)
{
    Error err = {.kind = ERROR_CANCELLED};
    for (int i = 0; i < LANES; i++) {
        Job *job;
        while ((job = turns_give_up(&dispatcher->lanes[i])) != NULL) {
            outcomes_settle(job, &err);
        }
    }
}
