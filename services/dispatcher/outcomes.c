// SPDX-License-Identifier: Apache-2.0
// How a job ends, and what a vendor's answer means for it. In between, its outcome is recorded
// (record.c).
#include "common/base/clock.h"
#include "common/base/log.h"
#include "services/dispatcher/dispatcher_internal.h"
#include "services/dispatcher/report.h"
#include "services/dispatcher/suppress.h"
#include "services/dispatcher/tracing/attempt_span.h"

// ---- ends ----

// A move that the table does not allow changes nothing. A job that still expects an answer goes on
// with that; any other is redelivered, and the ledger has its outcome.
bool outcomes_move(Job *job, JobState next)
{
    if (job_state_move(&job->state, next, job->name)) {
        return true;
    }
    if (job_state_is_at_rest(job->state)) {
        Error err = {0};
        error_set(
            &err, ERROR_TRANSIENT,
            "internal error: a delivery was in an unexpected state; it is redelivered");
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

void outcomes_redeliver(Job *job, int64_t delay_ms)
{
    Dispatcher *dispatcher = job->owner;
    if (end(job)) {
        metric_add(dispatcher->metrics.returned, 1);
        delivery_redeliver(
            job->delivery, (int)(delay_ms < REDELIVER_MAX_MS ? delay_ms : REDELIVER_MAX_MS));
    }
}

// NULL: no line.
static const char *log_event_of(const LedgerRow *row)
{
    switch (row->state) {
    case LEDGER_SENT:
        return row->vendor.len > 0 ? "a mail was sent" : NULL;
    case LEDGER_DEFERRED:
        return str_eq(row->next_step, STR("fallback"))
                   ? "an attempt to send a mail failed; it goes to another vendor next"
                   : "an attempt to send a mail failed; it will be repeated";
    case LEDGER_FAILED:
        return "an attempt to send a mail failed; it will not be repeated";
    case LEDGER_PARKED:
        return "a mail waits for an operator: its outcome is unknown";
    case LEDGER_NONE:
    case LEDGER_CLAIMED:
        break;
    }
    return NULL;
}

static void log_attempt(const Job *job)
{
    const LedgerRow *row = &job->row;
    const char *event = log_event_of(row);
    LogLevel level = row->state == LEDGER_SENT ? LOG_INFO : LOG_WARN;
    if (event == NULL || !log_takes_notification(level)) {
        return;
    }
    char reply[JOB_REPLY_MAX];
    Str next = next_fallback(job);
    mask_addresses(row->reply, reply, sizeof reply);
    LOG(level, event, log_str("tenant", job->row_key->tenant),
        log_str("notification", job->row_key->notification_id),
        log_text("correlation", job->rendered->meta->correlation_id),
        log_int("attempt", job->row_key->attempt), log_str("vendor", row->vendor),
        log_str("code", row->code), log_str("enhanced_code", row->enhanced),
        log_text("reply", reply),
        next.len > 0 ? log_str("next_vendor", next) : (LogField){.type = LOG_END});
}

void outcomes_publish(Job *job)
{
    const Dispatcher *dispatcher = job->owner;
    log_attempt(job);
    attempt_span(dispatcher->parts.tracer, job);
    Error verdict = {0};
    Error err = {0};
    // Killed before this is stored, or before the ack: the redelivery finds the row and publishes
    // the same events (dispatcher.h; test_kill.py).
    if (!suppress_address(
            job, dispatcher->parts.bus, directory_suppressions(dispatcher->directory), &err) ||
        !report(job, &verdict, &err)) {
        verdict = err;
    }
    outcomes_settle(job, verdict.kind == ERROR_NONE ? NULL : &verdict);
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
    LOG(LOG_WARN, "a mail was sent but the server's answer never came; its outcome is unknown",
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
    record_add(job, JOB_RECORDING);
}

void outcomes_on_sent(void *ctx, Mail *mail, const SendResult *result)
{
    (void)mail;
    Job *job = ctx;
    Dispatcher *dispatcher = job->owner;
    if (job->state != JOB_SENDING) { // a second answer changes nothing and sends nothing
        LOG(LOG_ERROR,
            "internal error: the vendor answered twice for one mail; the second answer is ignored",
            log_str("notification", job->key->notification_id),
            log_int("attempt", job->key->attempt));
        return;
    }
    const SendResult shown = job_shown(job, result);
    result = &shown;
    if (job->route.routed) {
        next_after(job, result);
        return;
    }
    if (result->state == SEND_UNKNOWN) {
        on_unknown(job, result);
        return;
    }
    if (result->state == SEND_RELEASED && job->resends == 0) {
        record_add(job, JOB_RELEASING);
        return;
    }
    if (next_is_limited(result)) {
        next_limited(job, result);
        return;
    }
    // Released after an attempt with an unknown outcome counts as unsent: the ladder repeats it,
    // and unknown_count records that it may be the second mail.
    job_outcome(job, &dispatcher->parts.rules, result, clock_now_us());
    record_add(job, JOB_RECORDING);
}
