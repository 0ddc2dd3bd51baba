// SPDX-License-Identifier: Apache-2.0
// Outcomes on their way to the ledger: gathered for a moment, recorded by one statement, then
// published. And the leases of the mails that are still under way.
//
// A mail that the vendor took must not be sent again, so its delivery goes back to JetStream only
// when the ledger has its outcome. Postgres away: the outcome waits. Postgres rejects it: it is
// tried once more without the vendor's reply; when that is rejected too it is set aside, with its
// claim, and tried again at each tick. Only a process that stops gives up: it publishes what
// happened and acks; the row stays claimed, and `stentor audit` lists it.
#include "common/base/clock.h"
#include "common/base/crash.h"
#include "common/base/log.h"
#include "services/dispatcher/dispatcher_internal.h"
#include "services/dispatcher/report.h"
#include "services/dispatcher/tracing/attempt_span.h"

// Outcomes in one transaction; lives in its arena.
typedef struct Flush {
    Dispatcher *dispatcher;
    Job **jobs;
    size_t recording; // in state RECORDING; the others are RELEASING
    size_t count;
} Flush;

static void flush_jobs(Dispatcher *dispatcher, Job **jobs, size_t count);

// ---- gathering ----

void record_append(JobQueue *queue, Job *job)
{
    job->next = NULL;
    *(queue->tail != NULL ? &queue->tail->next : &queue->head) = job;
    queue->tail = job;
    queue->count++;
}

Job *record_take_first(JobQueue *queue)
{
    Job *job = queue->head;
    if (job != NULL) {
        queue->head = job->next;
        queue->tail = queue->head != NULL ? queue->tail : NULL;
        queue->count--;
        job->next = NULL;
    }
    return job;
}

static void flush_finished(Dispatcher *dispatcher)
{
    while (dispatcher->finished.count > 0) {
        Job *jobs[FLUSH_MAX];
        size_t count = 0;
        while (count < FLUSH_MAX && dispatcher->finished.count > 0) {
            jobs[count++] = record_take_first(&dispatcher->finished);
        }
        flush_jobs(dispatcher, jobs, count);
    }
}

static void on_flush_timer(uv_timer_t *timer)
{
    flush_finished(timer->data);
}

static void arm_flush(Dispatcher *dispatcher, uint64_t delay_ms)
{
    uv_timer_start(&dispatcher->flush_timer, on_flush_timer, delay_ms, 0);
}

void record_add(Job *job, JobState next)
{
    Dispatcher *dispatcher = job->owner;
    if (!outcomes_move(job, next)) {
        return; // so no job is in the list twice
    }
    record_append(&dispatcher->finished, job);
    // While Postgres is away the back-off sets the pace, however many outcomes wait. Waiting
    // outcomes always have a timer, because a flush under way may be the last to start one.
    bool away = dispatcher->flush_backoff_ms > 0;
    if (!away && dispatcher->finished.count >= FLUSH_MAX) {
        arm_flush(dispatcher, 0);
    } else if (!uv_is_active((uv_handle_t *)&dispatcher->flush_timer)) {
        arm_flush(dispatcher, away ? dispatcher->flush_backoff_ms : FLUSH_MS);
    }
}

// ---- recorded ----

static void note_recorded(Dispatcher *dispatcher, const PGresult *res)
{
    for (int n = 0; n < db_rows(res); n++) {
        LedgerHit hit = ledger_hit(res, (size_t)n);
        char name[JOB_NAME_SIZE];
        Str found = job_name(hit.notification_id, hit.attempt, name, sizeof name);
        Job *job = map_get(dispatcher->jobs, found);
        if (job != NULL) {
            bool proved = hit.settled && job->row.state != LEDGER_SENT;
            (void)outcomes_move(job, proved ? JOB_PROVED : JOB_RECORDED);
        }
    }
}

// A mail that ended: not one that gets another attempt.
static void count_mail(const DispatcherMetrics *metrics, const Job *job, const char *trace)
{
    const Stentor__V1__Rendered *rendered = job->rendered;
    const LedgerRow *row = &job->row;
    if (row->state == LEDGER_SENT) {
        int64_t wanted_us =
            rendered->due_at_us > 0 ? rendered->due_at_us : rendered->accepted_at_us;
        double late_s = (double)(row->finished_at_us - wanted_us) / 1e6;
        metric_add(metrics->mails_sent, 1);
        metric_observe(metrics->attempts_sent, rendered->attempt);
        if (wanted_us > 0 && rendered->resends == 0) { // a resend comes days later
            metric_observe_in(
                metrics->delivery_seconds, late_s > 0 ? late_s : 0, trace, row->finished_at_us);
        }
    } else if (row->state == LEDGER_FAILED && report_is_barred(row)) {
        metric_add(metrics->mails_suppressed, 1);
    } else if (row->state == LEDGER_FAILED) {
        metric_add(metrics->mails_failed, 1);
        metric_observe(metrics->attempts_failed, rendered->attempt);
    }
}

static void count_outcome(const Job *job)
{
    const Dispatcher *dispatcher = job->owner;
    const DispatcherMetrics *metrics = &dispatcher->metrics;
    const LedgerRow *row = &job->row;
    char text[ATTEMPT_TRACE_SIZE];
    const char *trace = attempt_trace(dispatcher->parts.tracer, job, text);
    count_mail(metrics, job, trace);
    if (row->state == LEDGER_SENT) {
        metric_add(metrics->sent, 1);
        if (!job->taken_unknown) { // else its claim was another process's
            metric_observe_in(
                metrics->send_seconds, (double)(row->finished_at_us - row->claimed_at_us) / 1e6,
                trace, row->finished_at_us);
        }
    } else if (row->state == LEDGER_DEFERRED) {
        metric_add(metrics->deferred, 1);
    } else if (row->state == LEDGER_FAILED) {
        metric_add(
            row->vendor.len == 0 ? metrics->decided
            : row->rung >= 0     ? metrics->exhausted
                                 : metrics->rejected,
            1);
    }
}

static void finish(Job *job)
{
    Dispatcher *dispatcher = job->owner;
    if (job->state == JOB_RELEASING) {
        // Only a stopping process releases, and it returns the delivery when its bus closes
        // (worker.h). A delayed NAK would expire while the pull requests of the leaving process are
        // still open, and nats-server 2.9 then keeps the message until the ack wait is over.
        Error cancelled = {.kind = ERROR_CANCELLED};
        CRASH_POINT("dispatcher.released");
        metric_add(dispatcher->metrics.released, 1);
        outcomes_settle(job, &cancelled);
    } else if (job->state == JOB_PROVED) {
        // A callback settled it during this attempt; the redelivery publishes the row.
        metric_add(dispatcher->metrics.settled, 1);
        outcomes_redeliver(job, REDELIVER_RACE_MS);
    } else if (job->state == JOB_RECORDED) {
        count_outcome(job);
        outcomes_publish(job);
    } else {
        // Its lease ended, and another process took it over as unknown and now publishes its
        // outcome.
        metric_add(dispatcher->metrics.lost, 1);
        LOG(LOG_WARN,
            "another process took over the claim of a sent mail before its outcome was recorded; "
            "it may be sent twice",
            log_str("notification", job->key->notification_id), log_str("tenant", job->key->tenant),
            log_int("attempt", job->key->attempt));
        outcomes_redeliver(job, REDELIVER_SELF_MS);
    }
}

// ---- not recorded ----

// This process stops and cannot record the outcome. A status and an ack keep the mail from being
// sent again; its row stays claimed.
static void publish_unrecorded(Job *job, const Error *err)
{
    LOG(LOG_ERROR,
        "stopping before the ledger recorded an outcome; it is published anyway (stentor audit "
        "lists it)",
        log_str("notification", job->key->notification_id), log_str("tenant", job->key->tenant),
        log_int("attempt", job->key->attempt), log_error(err));
    if (job->row.state == LEDGER_SENT) {
        job->row.due_at_us = 0; // no next call without the row that decides about it
        job->row.rung = -1;
    }
    if (outcomes_move(job, JOB_RECORDED)) {
        finish(job);
    }
}

// Postgres does not answer. A process that is stopping and has tried for a while publishes the
// mails that the vendor took; everything else waits, or the next process takes it up.
static void try_again_later(Dispatcher *dispatcher, Job **jobs, size_t count, const Error *err)
{
    if (dispatcher->flush_backoff_ms == 0) {
        LOG(LOG_WARN, "outcomes were not committed to the ledger; they are kept and tried again",
            log_int("count", (int64_t)count), log_error(err));
        dispatcher->flush_backoff_ms = FLUSH_BACKOFF_MIN_MS;
    } else if (dispatcher->flush_backoff_ms < FLUSH_BACKOFF_MAX_MS) {
        dispatcher->flush_backoff_ms *= 2;
    }
    bool leaving = dispatcher->stopping &&
                   uv_now(dispatcher->parts.loop) - dispatcher->stopping_at_ms >= STOP_PATIENCE_MS;
    for (size_t i = 0; i < count; i++) {
        if (leaving && jobs[i]->state == JOB_RECORDING && jobs[i]->row.state == LEDGER_SENT) {
            publish_unrecorded(jobs[i], err);
        } else {
            record_append(&dispatcher->finished, jobs[i]);
        }
    }
    arm_flush(dispatcher, dispatcher->flush_backoff_ms);
}

// Postgres rejects this one outcome.
static void outcome_refused(Dispatcher *dispatcher, Job *job, const Error *err)
{
    if (job->state == JOB_RELEASING) {
        finish(job); // not sent: the next process waits for the lease
    } else if (job_shorten_row(job)) {
        LOG(LOG_WARN, "Postgres rejected an outcome; it is recorded without the vendor's reply",
            log_str("notification", job->key->notification_id), log_str("tenant", job->key->tenant),
            log_int("attempt", job->key->attempt), log_error(err));
        flush_jobs(dispatcher, &job, 1);
    } else if (dispatcher->stopping) {
        publish_unrecorded(job, err);
    } else {
        if (!job->aside) {
            LOG(LOG_ERROR,
                "Postgres rejects an outcome; its claim is kept and it is tried again until the "
                "table is fixed",
                log_str("notification", job->key->notification_id),
                log_str("tenant", job->key->tenant), log_int("attempt", job->key->attempt),
                log_error(err),
                log_text(
                    "hint",
                    "compare the table with the migrations: psql -c '\\d+ dispatcher.ledger'"));
        }
        job->aside = true;
        record_append(&dispatcher->aside, job);
    }
}

static void flush_failed(Dispatcher *dispatcher, Job **jobs, size_t count, const Error *err)
{
    if (err->kind == ERROR_CANCELLED) {
        for (size_t i = 0; i < count; i++) {
            outcomes_settle(jobs[i], err);
        }
    } else if (err->kind != ERROR_PERMANENT) {
        try_again_later(dispatcher, jobs, count, err);
    } else if (count == 1) {
        outcome_refused(dispatcher, jobs[0], err);
    } else {
        for (size_t i = 0; i < count; i++) {
            flush_jobs(dispatcher, &jobs[i], 1);
        }
    }
}

void record_try_aside(Dispatcher *dispatcher)
{
    Job *job = record_take_first(&dispatcher->aside);
    if (job != NULL) {
        flush_jobs(dispatcher, &job, 1);
    }
}

void record_all_aside(Dispatcher *dispatcher)
{
    Job *job;
    while ((job = record_take_first(&dispatcher->aside)) != NULL) {
        record_append(&dispatcher->finished, job);
        arm_flush(dispatcher, 0);
    }
}

static void on_outcomes_committed(void *ctx, DbTxn *txn, const Error *err)
{
    Flush *flush = ctx;
    Dispatcher *dispatcher = flush->dispatcher;
    if (err != NULL) {
        flush_failed(dispatcher, flush->jobs, flush->count, err);
        return;
    }
    CRASH_POINT_IF("dispatcher.outcome_committed", flush->recording > 0);
    dispatcher->flush_backoff_ms = 0;
    if (flush->jobs[0]->aside) {
        record_all_aside(dispatcher); // it was tried alone and was recorded
    }
    if (flush->recording > 0) {
        note_recorded(dispatcher, db_txn_result(txn, 0));
    }
    for (size_t i = 0; i < flush->count; i++) {
        finish(flush->jobs[i]);
    }
}

static void flush_jobs(Dispatcher *dispatcher, Job **jobs, size_t count)
{
    DbTxn *txn = db_txn_new(dispatcher->parts.pool);
    Arena *arena = db_txn_arena(txn);
    Flush *flush = arena_zalloc(arena, sizeof *flush);
    flush->dispatcher = dispatcher;
    flush->jobs = arena_array(arena, count, sizeof(Job *));
    const LedgerKey **keys = arena_array(arena, count, sizeof(LedgerKey *));
    const LedgerRow **rows = arena_array(arena, count, sizeof(LedgerRow *));
    for (int releasing = 0; releasing < 2; releasing++) {
        for (size_t i = 0; i < count; i++) {
            if ((jobs[i]->state == JOB_RELEASING) == (releasing == 1)) {
                keys[flush->count] = jobs[i]->key;
                rows[flush->count] = &jobs[i]->row;
                flush->jobs[flush->count++] = jobs[i];
            }
        }
        flush->recording = releasing == 0 ? flush->count : flush->recording;
    }
    if (flush->recording > 0) {
        ledger_add_outcomes(txn, keys, rows, flush->recording, dispatcher->owner);
    }
    if (flush->recording < flush->count) {
        ledger_add_release(
            txn, keys + flush->recording, flush->count - flush->recording, dispatcher->owner);
    }
    // Killed before its commit: sent and not recorded, so unknown (dispatcher.h; test_kill.py).
    db_txn_submit(txn, on_outcomes_committed, flush);
}

// ---- leases ----

typedef struct Renewal {
    Dispatcher *dispatcher;
    uint64_t until_ms;
    int count;
} Renewal;

static void on_renewed(void *ctx, DbTxn *txn, const Error *err)
{
    Renewal *renewal = ctx;
    renewal->dispatcher->renewing = false;
    if (err != NULL) {
        LOG(LOG_WARN, "leases of mails in flight were not renewed; trying again", log_error(err));
        return;
    }
    const PGresult *res = db_txn_result(txn, 0);
    for (int n = 0; n < db_rows(res); n++) {
        LedgerHit hit = ledger_hit(res, (size_t)n);
        char name[JOB_NAME_SIZE];
        Job *job = map_get(
            renewal->dispatcher->jobs,
            job_name(hit.notification_id, hit.attempt, name, sizeof name));
        if (job != NULL) {
            job->mail.held_until_ms = renewal->until_ms;
        }
    }
    if (renewal->count == LEDGER_BATCH_MAX && db_rows(res) == LEDGER_BATCH_MAX) {
        record_renew(renewal->dispatcher); // more leases may be due than fit into one statement
    }
}

void record_renew(Dispatcher *dispatcher)
{
    uint64_t now_ms = uv_now(dispatcher->parts.loop);
    uint64_t lease_ms = (uint64_t)dispatcher->parts.lease_ms;
    const LedgerKey *keys[LEDGER_BATCH_MAX];
    size_t count = 0;
    Str name;
    void *value;
    for (size_t i = 0; count < LEDGER_BATCH_MAX && map_next(dispatcher->jobs, &i, &name, &value);) {
        const Job *job = value;
        if (job_state_is_claimed(job->state) && job->mail.held_until_ms < now_ms + lease_ms / 2) {
            keys[count++] = job->key;
        }
    }
    if (count == 0 || dispatcher->renewing) {
        return;
    }
    dispatcher->renewing = true;
    DbTxn *txn = db_txn_new(dispatcher->parts.pool);
    Renewal *renewal = arena_zalloc(db_txn_arena(txn), sizeof *renewal);
    *renewal = (Renewal){dispatcher, now_ms + lease_ms, (int)count};
    LedgerClaim held = {dispatcher->owner, dispatcher->parts.lease_ms, clock_now_us()};
    ledger_add_renew(txn, keys, count, &held);
    db_txn_submit(txn, on_renewed, renewal);
}
