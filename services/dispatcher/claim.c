// SPDX-License-Identifier: Apache-2.0
// From opened jobs to mails that the vendor has: the claim, and its conflicts.
#include "common/base/clock.h"
#include "common/base/crash.h"
#include "common/base/log.h"
#include "services/dispatcher/dispatcher_internal.h"
#include "services/dispatcher/voice/calls.h"

// ---- claim ----

// A deferred attempt that uses no rung of the ladder.
static void postpone(Job *job)
{
    static const char WHY[] = "postponed: the vendor is slow for this tenant, and too many of its "
                              "mails are waiting already";
    SendResult result = {
        .state = SEND_ANSWERED, .reply = REPLY_THROTTLED, .text = {WHY, sizeof WHY - 1}};
    const Dispatcher *dispatcher = job->owner;
    metric_add(dispatcher->metrics.postponed, 1);
    job_outcome(job, &dispatcher->parts.rules, &result, clock_now_us());
    record_add(job, JOB_RECORDING);
}

static void send_mail(Job *job)
{
    const Dispatcher *dispatcher = job->owner;
    if (!outcomes_move(job, JOB_SENDING)) {
        return;
    }
    // It is started in the first three quarters of the lease only: the last quarter is for the
    // answer, and record_renew() prolongs it when the vendor is slow.
    job->mail.give_up_at_ms = job->mail.held_until_ms - (uint64_t)dispatcher->parts.lease_ms / 4;
    // Killed from here until the outcome is committed: unknown (dispatcher.h; test_kill.py).
    dispatcher->parts.vendor.send(dispatcher->parts.vendor.self, &job->mail);
}

// CLAIMED: sends the mail, or records the outcome that was decided without sending.
static void begin(Job *job)
{
    const Dispatcher *dispatcher = job->owner;
    job->mail.tenant = job->key->tenant;
    job->mail.on_done = outcomes_on_sent;
    job->mail.ctx = job;
    // That of the stream, which may be lower than the priority's (common/model/rules/fair_share.h).
    job->mail.lane = ((const DispatcherLane *)job->lane)->lane;
    if (job->decided && !calls_may_have_begun(job)) {
        record_add(job, JOB_RECORDING);
    } else if (dispatcher->stopping) {
        record_add(job, JOB_RELEASING);
    } else if (job->postponed) {
        postpone(job);
    } else if (job->route.routed && job->taken_unknown) {
        next_taken_over(job);
    } else if (job->route.routed || job->route.waits_until_us > 0) {
        next_begin(job);
    } else {
        send_mail(job);
    }
}

static const LedgerKey **keys_of(Arena *arena, Job *const *jobs, size_t count)
{
    const LedgerKey **keys = arena_array(arena, count, sizeof(LedgerKey *));
    for (size_t i = 0; i < count; i++) {
        keys[i] = jobs[i]->key;
    }
    return keys;
}

static const LedgerPlace **places_of(Arena *arena, Job *const *jobs, size_t count)
{
    const LedgerPlace **places = arena_array(arena, count, sizeof(LedgerPlace *));
    for (size_t i = 0; i < count; i++) {
        places[i] = &jobs[i]->place;
    }
    return places;
}

static LedgerClaim claim_of(const JobBatch *batch)
{
    const Dispatcher *dispatcher = batch->dispatcher;
    return (LedgerClaim){dispatcher->owner, dispatcher->parts.lease_ms, batch->now_us};
}

static void note_lease(JobBatch *batch, Job *job)
{
    // From before the statement, so it ends here before it ends in the ledger.
    uint64_t now_ms = uv_now(batch->dispatcher->parts.loop);
    job->mail.held_until_ms = now_ms + (uint64_t)batch->dispatcher->parts.lease_ms;
    job->row.claimed_at_us = batch->now_us;
}

// ---- conflicts ----

static void parked_now(Job *job, const LedgerHit *hit)
{
    Dispatcher *dispatcher = job->owner;
    // As the ledger has it now: a redelivery reads the same.
    int64_t parked_at_us = job->row.claimed_at_us;
    job->row = job->conflict->row;
    job->row.state = LEDGER_PARKED;
    job->row.finished_at_us = parked_at_us;
    job->row.unknown_count = hit->unknown_count;
    metric_add(dispatcher->metrics.parked, 1);
    LOG(LOG_WARN,
        "a mail whose outcome is unknown was parked; its dead letter waits for an operator",
        log_str("notification", job->key->notification_id), log_str("tenant", job->key->tenant),
        log_int("attempt", job->key->attempt));
}

static void note_hits(Dispatcher *dispatcher, const PGresult *res, bool parked)
{
    for (int n = 0; n < db_rows(res); n++) {
        LedgerHit hit = ledger_hit(res, (size_t)n);
        char name[JOB_NAME_SIZE];
        Job *job = map_get(
            dispatcher->jobs, job_name(hit.notification_id, hit.attempt, name, sizeof name));
        if (job == NULL) {
            continue;
        }
        if (hit.settled) { // it was sent; its redelivery reads that and publishes it
            metric_add(dispatcher->metrics.settled, 1);
            continue;
        }
        if (!outcomes_move(job, parked ? JOB_RECORDED : JOB_CLAIMED)) {
            continue;
        }
        if (parked) {
            parked_now(job, &hit);
        } else {
            metric_add(
                dispatcher->metrics.unknown, hit.unknown_count > job->row.unknown_count ? 1 : 0);
            job->taken_unknown = hit.unknown_count > job->row.unknown_count;
            job->row.unknown_count = hit.unknown_count;
            if (job->taken_unknown) { // since when the vendor may have it: asked about later
                job->row.claimed_at_us = job->conflict->row.claimed_at_us;
            }
        }
    }
}

static void on_taken_over(void *ctx, DbTxn *txn, const Error *err)
{
    JobBatch *batch = ctx;
    Dispatcher *dispatcher = batch->dispatcher;
    size_t count = batch->count;
    size_t takes = batch->takes;
    Job **jobs = batch->jobs;
    CRASH_POINT_IF("dispatcher.taken_over", err == NULL);
    if (err == NULL) {
        note_hits(dispatcher, takes > 0 ? db_txn_result(txn, 0) : NULL, false);
        note_hits(dispatcher, takes < count ? db_txn_result(txn, takes > 0 ? 1 : 0) : NULL, true);
    }
    for (size_t i = 0; i < count; i++) {
        Job *job = jobs[i];
        if (err != NULL) {
            outcomes_settle(job, err);
        } else if (job->state == JOB_CLAIMED) {
            begin(job);
        } else if (job->state == JOB_RECORDED) {
            outcomes_publish(job);
        } else {
            outcomes_redeliver(
                job, REDELIVER_RACE_MS); // another process took it, or a callback settled it
        }
    }
}

// Claims whose holder is gone, in one transaction: mails of released claims and of our own are
// sent; the others have an unknown outcome, which the policy decides.
static void take_over(JobBatch *batch)
{
    Dispatcher *dispatcher = batch->dispatcher;
    DbTxn *txn = db_txn_new(dispatcher->parts.pool);
    LedgerClaim held = claim_of(batch);
    const LedgerKey **keys = keys_of(db_txn_arena(txn), batch->jobs, batch->count);
    for (size_t i = 0; i < batch->count; i++) {
        note_lease(batch, batch->jobs[i]);
    }
    if (batch->takes > 0) {
        ledger_add_take_over(
            txn, keys, places_of(db_txn_arena(txn), batch->jobs, batch->takes), batch->takes,
            &held);
    }
    if (batch->takes < batch->count) {
        ledger_add_park(txn, keys + batch->takes, batch->count - batch->takes, &held);
    }
    db_txn_submit(txn, on_taken_over, batch);
}

// Another process was inserting the row. If the row stays invisible it belongs to another tenant,
// and the event is wrong.
static void recheck_conflict(Job *job)
{
    if (job->delivery->message.delivered < RACE_DELIVERIES_MAX) {
        outcomes_redeliver(job, REDELIVER_RACE_MS);
        return;
    }
    Error err = {0};
    error_set(
        &err, ERROR_PERMANENT,
        "the ledger has this notification for another tenant than '" STR_FMT "'",
        STR_ARG(job->key->tenant));
    outcomes_settle(job, &err);
}

static void on_item_stored(void *ctx, Mail *mail, const SendResult *result)
{
    (void)mail;
    Job *job = ctx;
    if (result->reply == REPLY_RETRY) {
        outcomes_redeliver(job, REDELIVER_RACE_MS);
    } else {
        outcomes_publish(job);
    }
}

// A NATS store that was restored may lack an item that the ledger calls sent. It is stored again,
// and is no second one (vendor/inapp/inapp_vendor.h). false: it is none, or is not to be shown any
// more.
static bool store_again(Job *job)
{
    const Dispatcher *dispatcher = job->owner;
    bool item = job->row.state == LEDGER_SENT && str_eq(job->row.vendor, STR(ROUTING_INAPP)) &&
                !job->decided && job->mail.message.len > 0 && dispatcher->parts.vendors != NULL;
    const VendorPlace *place =
        item
            ? vendors_place(dispatcher->parts.vendors, job->key->tenant, job->row.vendor, STR_EMPTY)
            : NULL;
    if (place == NULL) {
        return false;
    }
    job->mail.on_done = on_item_stored;
    job->mail.ctx = job;
    vendor_of(place)->send(vendor_of(place)->self, &job->mail);
    return true;
}

// The ledger has an outcome already: nothing is sent. It is published once more, because a crash
// may have come between its commit and its publication.
static void repeat(Job *job)
{
    const Dispatcher *dispatcher = job->owner;
    const LedgerConflict *conflict = job->conflict;
    if (calls_is_answered(job)) {
        outcomes_settle(job, NULL);
        return;
    }
    metric_add(dispatcher->metrics.refused, 1);
    LedgerKey *found = arena_zalloc(job->delivery->arena, sizeof *found);
    *found = *job->key;
    found->attempt = conflict->attempt;
    job->row = conflict->row;
    job->row_key = found;
    if (outcomes_move(job, JOB_RECORDED) && !store_again(job)) {
        outcomes_publish(job);
    }
}

// By a route, or by that of the process before.
static bool is_at_a_vendor(const Job *job)
{
    const Dispatcher *dispatcher = job->owner;
    const LedgerConflict *conflict = job->conflict;
    bool elsewhere = conflict != NULL && conflict->row.vendor.len > 0 &&
                     !str_eq(conflict->row.vendor, str_from(dispatcher->parts.vendor.name));
    return dispatcher->parts.vendors != NULL && (job->route.routed || elsewhere);
}

// Another transaction is to take its claim over, or to park it.
static bool take(Job *job, JobState next)
{
    const LedgerConflict *conflict = job->conflict;
    job->row.unknown_count = conflict->row.unknown_count;
    const Dispatcher *dispatcher = job->owner;
    if (conflict->owner.len > 0 && !str_eq(conflict->owner, dispatcher->owner) &&
        conflict->row.vendor.len > 0) {
        // It may have been sent there: it stays there, also when its route is gone.
        job->place =
            (LedgerPlace){conflict->row.vendor, conflict->row.credential, conflict->row.vendor_key};
        job->route.routed = is_at_a_vendor(job);
    }
    return outcomes_move(job, next);
}

// true: the job is for the next transaction.
static bool act(Job *job, Course course)
{
    switch (course) {
    case COURSE_BEGIN:
        if (outcomes_move(job, JOB_CLAIMED)) {
            begin(job);
        }
        break;
    case COURSE_RECHECK:
        recheck_conflict(job);
        break;
    case COURSE_REPEAT:
        repeat(job);
        break;
    case COURSE_WAIT:
        outcomes_redeliver(job, job->conflict->wait_ms + REDELIVER_RACE_MS);
        break;
    case COURSE_TAKE_OVER:
        return take(job, JOB_TAKING_OVER);
    case COURSE_PARK:
        return take(job, JOB_PARKING);
    }
    return false;
}

static void resolve_conflicts(JobBatch *batch)
{
    Dispatcher *dispatcher = batch->dispatcher;
    size_t count = batch->count;
    Job **jobs = batch->jobs;
    // The next transaction's list, made while the arena surely lives; parked ones are filled in
    // from the end.
    JobBatch *next = arena_zalloc(jobs[0]->delivery->arena, sizeof *next);
    *next = *batch;
    next->jobs = arena_array(jobs[0]->delivery->arena, count, sizeof *next->jobs);
    size_t takes = 0;
    size_t parks = 0;
    for (size_t i = 0; i < count; i++) {
        Job *job = jobs[i];
        // What a route's policy says is decided once the claim is held (next_taken_over).
        UnknownPolicy policy = is_at_a_vendor(job) ? UNKNOWN_RESEND : outcomes_policy(job);
        Course course = job_classify(job, dispatcher->owner, policy);
        if (!act(job, course)) {
            continue; // act() has handled it
        }
        if (course == COURSE_TAKE_OVER) {
            next->jobs[takes++] = job;
        } else {
            next->jobs[count - ++parks] = job;
        }
    }
    if (takes + parks == 0) {
        return;
    }
    for (size_t i = 0; i < parks; i++) {
        next->jobs[takes + i] = next->jobs[count - parks + i];
    }
    next->takes = takes;
    next->count = takes + parks;
    take_over(next);
}

static Str keep(Arena *arena, Str s)
{
    return s.len > 0 ? arena_str(arena, s) : STR_EMPTY;
}

// The row's texts point into the result, which goes with the transaction.
static void keep_conflict(Job *job, const LedgerConflict *conflict)
{
    if (!outcomes_move(job, JOB_REFUSED)) {
        return;
    }
    Arena *arena = job->delivery->arena;
    job->conflict = arena_zalloc(arena, sizeof *job->conflict);
    *job->conflict = *conflict;
    job->conflict->owner = keep(arena, conflict->owner);
    LedgerRow *row = &job->conflict->row;
    row->vendor = keep(arena, row->vendor);
    row->vendor_message_id = keep(arena, row->vendor_message_id);
    row->code = keep(arena, row->code);
    row->enhanced = keep(arena, row->enhanced);
    row->reply = keep(arena, row->reply);
    row->credential = keep(arena, row->credential);
    row->vendor_key = keep(arena, row->vendor_key);
    row->reply_class = keep(arena, row->reply_class);
    row->next_step = keep(arena, row->next_step);
    row->currency = keep(arena, row->currency);
}

// A row that Postgres cannot take must not hold up the others of its batch.
static void claim_one_by_one(JobBatch *batch)
{
    size_t count = batch->count;
    Job **jobs = batch->jobs;
    for (size_t i = 0; i < count; i++) {
        JobBatch *one = arena_zalloc(jobs[i]->delivery->arena, sizeof *one);
        *one = (JobBatch){
            .dispatcher = batch->dispatcher, .jobs = &jobs[i], .count = 1, .now_us = batch->now_us};
        claim_batch(one);
    }
}

static void claim_failed(JobBatch *batch, const Error *err)
{
    size_t count = batch->count;
    Job **jobs = batch->jobs;
    if (err->kind == ERROR_PERMANENT && count > 1) {
        claim_one_by_one(batch);
        return;
    }
    if (err->kind != ERROR_CANCELLED) {
        LOG(LOG_WARN,
            "claims were not committed to the ledger; their deliveries will be redelivered",
            log_int("count", (int64_t)count), log_error(err));
    }
    for (size_t i = 0; i < count; i++) {
        outcomes_settle(jobs[i], err);
    }
}

static void on_claimed(void *ctx, DbTxn *txn, const Error *err)
{
    JobBatch *batch = ctx;
    if (err != NULL) {
        claim_failed(batch, err);
        return;
    }
    CRASH_POINT("dispatcher.claimed");
    const PGresult *res = db_txn_result(txn, 0);
    for (size_t n = 0; n < ledger_conflicts(res); n++) {
        LedgerConflict conflict = ledger_conflict(res, n);
        if (conflict.index < batch->count) {
            keep_conflict(batch->jobs[conflict.index], &conflict);
        }
    }
    resolve_conflicts(batch);
}

void claim_batch(JobBatch *batch)
{
    Dispatcher *dispatcher = batch->dispatcher;
    DbTxn *txn = db_txn_new(dispatcher->parts.pool);
    LedgerClaim held = claim_of(batch);
    for (size_t i = 0; i < batch->count; i++) {
        Job *job = batch->jobs[i];
        note_lease(batch, job);
        if (job->decided) {
            job->place = (LedgerPlace){STR_EMPTY, STR_EMPTY, STR_EMPTY};
        } else if (!job->route.routed) {
            job->place =
                (LedgerPlace){str_from(dispatcher->parts.vendor.name), STR_EMPTY, STR_EMPTY};
        }
    }
    Arena *arena = db_txn_arena(txn);
    ledger_add_claim(
        txn, keys_of(arena, batch->jobs, batch->count), places_of(arena, batch->jobs, batch->count),
        batch->count, &held);
    // Killed after its commit and before the send: unknown (dispatcher.h; test_kill.py).
    db_txn_submit(txn, on_claimed, batch);
}
