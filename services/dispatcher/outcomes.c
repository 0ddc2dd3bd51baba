// SPDX-License-Identifier: Apache-2.0
// From the vendor's answer to the ack: outcomes are gathered for a moment, recorded by one
// statement, published.
#include "common/base/clock.h"
#include "common/base/crash.h"
#include "common/base/log.h"
#include "services/dispatcher/dispatcher_internal.h"
#include "services/dispatcher/report.h"
#include "services/dispatcher/suppress.h"

// Outcomes in one transaction; lives in its arena.
typedef struct Flush {
    Dispatcher *dispatcher;
    Job **jobs;
    size_t recording; // in state RECORDING; the others are RELEASING
    size_t count;
} Flush;

static void flush_jobs(Dispatcher *dispatcher, Job **jobs, size_t count);
static void arm_flush(Dispatcher *dispatcher, uint64_t delay_ms);

// ---- ends ----

// A refused move changes nothing. Where an answer is still to come the job goes on with that;
// elsewhere its delivery comes again, and the ledger knows what became of it.
bool outcomes_move(Job *job, JobState next)
{
    if (job_state_move(&job->state, next, job->name)) {
        return true;
    }
    if (job_state_is_at_rest(job->state)) {
        Error err = {0};
        error_set(&err, ERROR_TRANSIENT, "the job is in a state that should not be");
        outcomes_settle(job, &err);
    }
    return false;
}

// false: it has ended already, or the vendor has it.
static bool end(Job *job)
{
    if (!job_state_move(&job->state, JOB_ENDED, job->name)) {
        return false;
    }
    intake_left(job);
    return true;
}

void outcomes_settle(Job *job, const Error *err)
{
    if (end(job)) {
        delivery_settle(job->delivery, err); // the job may be gone with its batch
    }
}

void outcomes_again(Job *job, int64_t delay_ms)
{
    Dispatcher *dispatcher = job->owner;
    if (end(job)) {
        metric_add(dispatcher->metrics.again, 1);
        delivery_again(job->delivery, (int)(delay_ms < AGAIN_MAX_MS ? delay_ms : AGAIN_MAX_MS));
    }
}

void outcomes_publish(Job *job)
{
    Error verdict = {0};
    Error err = {0};
    // Killed before this is stored, or before the ack: the redelivery finds the row and publishes
    // the same again (dispatcher.h; test_kill.py).
    const Dispatcher *dispatcher = job->owner;
    if (!suppress_address(
            job, dispatcher->parts.bus, directory_suppressions(dispatcher->directory), &err) ||
        !report(job, &verdict, &err)) {
        verdict = err;
    }
    outcomes_settle(job, verdict.kind == ERROR_NONE ? NULL : &verdict);
}

static void count_outcome(const Job *job)
{
    const Dispatcher *dispatcher = job->owner;
    const DispatcherMetrics *metrics = &dispatcher->metrics;
    const LedgerRow *row = &job->row;
    if (row->state == LEDGER_SENT) {
        metric_add(metrics->sent, 1);
        metric_observe(
            metrics->send_seconds, (double)(row->finished_at_us - row->claimed_at_us) / 1e6);
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

// ---- the vendor's answer ----

static bool send_again(Job *job)
{
    Dispatcher *dispatcher = job->owner;
    uint64_t now = uv_now(dispatcher->parts.loop);
    uint64_t quarter = (uint64_t)dispatcher->parts.lease_ms / 4;
    if (job->resends >= JOB_RESENDS_MAX || dispatcher->stopping ||
        now + quarter >= job->mail.held_until_ms) {
        return false;
    }
    job->resends++;
    job->mail.give_up_at_ms = job->mail.held_until_ms - quarter;
    dispatcher->parts.vendor.send(dispatcher->parts.vendor.self, &job->mail);
    return true;
}

UnknownPolicy outcomes_policy(const Job *job)
{
    const Dispatcher *dispatcher = job->owner;
    unsigned channel = (unsigned)job->rendered->channel; // checked by job_read()
    return dispatcher->parts.unknown.of[channel < CHANNEL_COUNT ? channel : CHANNEL_NONE];
}

static void on_unknown(Job *job, const SendResult *result)
{
    Dispatcher *dispatcher = job->owner;
    job->row.unknown_count++;
    metric_add(dispatcher->metrics.unknown, 1);
    LOG(LOG_WARN, "mail was sent and its answer never came",
        log_str("notification", job->key->notification_id), log_str("tenant", job->key->tenant),
        log_int("attempt", job->key->attempt));
    UnknownPolicy policy = outcomes_policy(job);
    if (policy == UNKNOWN_RESEND && send_again(job)) {
        return; // the same bytes with the same Message-ID
    }
    job_outcome(job, &dispatcher->parts.rules, result, clock_now_us());
    if (policy == UNKNOWN_PARK) {
        job->row.state = LEDGER_PARKED;
        metric_add(dispatcher->metrics.parked, 1);
    }
    outcomes_add(job, JOB_RECORDING);
}

void outcomes_on_sent(void *ctx, Mail *mail, const SendResult *result)
{
    (void)mail;
    Job *job = ctx;
    Dispatcher *dispatcher = job->owner;
    if (job->state != JOB_SENDING) { // a second answer decides nothing, and above all sends nothing
        LOG(LOG_ERROR, "the vendor answered for a mail that it does not have",
            log_str("notification", job->key->notification_id),
            log_int("attempt", job->key->attempt));
        return;
    }
    if (result->state == SEND_UNKNOWN) {
        on_unknown(job, result);
        return;
    }
    if (result->state == SEND_RELEASED && job->resends == 0) {
        outcomes_add(job, JOB_RELEASING);
        return;
    }
    // Released after an unknown try counts as unsent: the ladder brings it back, and unknown_count
    // tells.
    job_outcome(job, &dispatcher->parts.rules, result, clock_now_us());
    outcomes_add(job, JOB_RECORDING);
}

// ---- recording ----

static void append(Dispatcher *dispatcher, Job *job)
{
    job->next = NULL;
    if (dispatcher->finished_tail == NULL) {
        dispatcher->finished_head = job;
    } else {
        dispatcher->finished_tail->next = job;
    }
    dispatcher->finished_tail = job;
    dispatcher->finished++;
}

void outcomes_add(Job *job, JobState next)
{
    Dispatcher *dispatcher = job->owner;
    if (!outcomes_move(job, next)) {
        return; // above all, no job stands in the list twice
    }
    append(dispatcher, job);
    // While Postgres is away the pace is that of the back-off, however many wait. What waits always
    // has a timer: a flush under way may be the last that asks for one.
    bool away = dispatcher->flush_backoff_ms > 0;
    if (!away && dispatcher->finished >= FLUSH_MAX) {
        arm_flush(dispatcher, 0);
    } else if (!uv_is_active((uv_handle_t *)&dispatcher->flush_timer)) {
        arm_flush(dispatcher, away ? dispatcher->flush_backoff_ms : FLUSH_MS);
    }
}

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

static void conclude(Job *job)
{
    Dispatcher *dispatcher = job->owner;
    if (job->state == JOB_RELEASING) {
        // Only a stopping process releases, and it gives back when its bus closes (worker.h). A
        // delayed NAK would end while the pull requests of a process that leaves are open, and
        // nats-server 2.9 then keeps the message until the ack wait is over.
        Error cancelled = {.kind = ERROR_CANCELLED};
        CRASH_POINT("dispatcher.released");
        metric_add(dispatcher->metrics.released, 1);
        outcomes_settle(job, &cancelled);
    } else if (job->state == JOB_PROVED) {
        // A callback proved it while it was being tried again; the redelivery tells what the row
        // says.
        metric_add(dispatcher->metrics.settled, 1);
        outcomes_again(job, AGAIN_RACE_MS);
    } else if (job->state == JOB_RECORDED) {
        count_outcome(job);
        outcomes_publish(job);
    } else {
        // Its lease ended and somebody else took it over as unknown; what became of it is theirs to
        // tell.
        metric_add(dispatcher->metrics.lost, 1);
        LOG(LOG_WARN, "the claim of a sent mail was taken over before its outcome was recorded",
            log_str("notification", job->key->notification_id), log_str("tenant", job->key->tenant),
            log_int("attempt", job->key->attempt));
        outcomes_again(job, AGAIN_SELF_MS);
    }
}

static void try_again_later(Dispatcher *dispatcher, Job **jobs, size_t count, const Error *err)
{
    if (dispatcher->flush_backoff_ms == 0) {
        LOG(LOG_WARN, "outcomes are not committed; they are kept and tried again",
            log_int("count", (int64_t)count), log_error(err));
        dispatcher->flush_backoff_ms = FLUSH_BACKOFF_MIN_MS;
    } else if (dispatcher->flush_backoff_ms < FLUSH_BACKOFF_MAX_MS) {
        dispatcher->flush_backoff_ms *= 2;
    }
    for (size_t i = 0; i < count; i++) {
        append(dispatcher, jobs[i]);
    }
    arm_flush(dispatcher, dispatcher->flush_backoff_ms);
}

// The answer is known and Postgres can never take it: what happened is published all the same, and
// the mail is not sent again. The row stays claimed, which `stentor audit` names.
static void publish_unrecorded(Job *job, const Error *err)
{
    LOG(LOG_ERROR, "an outcome cannot be recorded",
        log_str("notification", job->key->notification_id), log_str("tenant", job->key->tenant),
        log_int("attempt", job->key->attempt), log_error(err));
    if (job->state == JOB_RELEASING || outcomes_move(job, JOB_RECORDED)) {
        conclude(job);
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
        publish_unrecorded(jobs[0], err);
    } else {
        for (size_t i = 0; i < count; i++) {
            flush_jobs(dispatcher, &jobs[i], 1);
        }
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
    if (flush->recording > 0) {
        note_recorded(dispatcher, db_txn_result(txn, 0));
    }
    for (size_t i = 0; i < flush->count; i++) {
        conclude(flush->jobs[i]);
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
    // Killed before its commit: sent and not recorded, the unknown (dispatcher.h; test_kill.py).
    db_txn_submit(txn, on_outcomes_committed, flush);
}

void outcomes_flush(Dispatcher *dispatcher)
{
    while (dispatcher->finished_head != NULL) {
        Job *jobs[FLUSH_MAX];
        size_t count = 0;
        while (count < FLUSH_MAX && dispatcher->finished_head != NULL) {
            jobs[count] = dispatcher->finished_head;
            dispatcher->finished_head = jobs[count]->next;
            jobs[count]->next = NULL;
            count++;
        }
        dispatcher->finished -= count;
        if (dispatcher->finished_head == NULL) {
            dispatcher->finished_tail = NULL;
        }
        flush_jobs(dispatcher, jobs, count);
    }
}

static void on_flush_timer(uv_timer_t *timer)
{
    outcomes_flush(timer->data);
}

static void arm_flush(Dispatcher *dispatcher, uint64_t delay_ms)
{
    uv_timer_start(&dispatcher->flush_timer, on_flush_timer, delay_ms, 0);
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
        LOG(LOG_WARN, "leases are not renewed; it is tried again", log_error(err));
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
        outcomes_renew(renewal->dispatcher); // more than fit into one statement may be due
    }
}

static bool is_due(const Job *job, uint64_t now_ms, uint64_t lease_ms)
{
    return job_state_is_claimed(job->state) && job->mail.held_until_ms < now_ms + lease_ms / 2;
}

void outcomes_renew(Dispatcher *dispatcher)
{
    uint64_t now_ms = uv_now(dispatcher->parts.loop);
    uint64_t lease_ms = (uint64_t)dispatcher->parts.lease_ms;
    const LedgerKey *keys[LEDGER_BATCH_MAX];
    size_t count = 0;
    Str name;
    void *value;
    for (size_t i = 0; count < LEDGER_BATCH_MAX && map_next(dispatcher->jobs, &i, &name, &value);) {
        const Job *job = value;
        if (is_due(job, now_ms, lease_ms)) {
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
