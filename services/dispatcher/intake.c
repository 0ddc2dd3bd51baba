// SPDX-License-Identifier: Apache-2.0
// From a batch of deliveries to mails in the vendor's hands.
#include "common/base/clock.h"
#include "common/base/crash.h"
#include "common/base/log.h"
#include "common/codec/event.h"
#include "common/events/sealed.h"
#include "services/dispatcher/turns.h"

enum { TURNS_MS = 100 };

// Jobs that go on together; in the deliveries' arena, so it is gone when the last of them is
// settled.
typedef struct Batch {
    Dispatcher *dispatcher;
    Job **jobs;
    size_t count;
    KeyWant *wants; // two for each job: its address's key and its content's
    int64_t now_us;
    size_t takes; // of take_over(): the first so many are taken over, the others parked
} Batch;

static void claim(Batch *batch);

// ---- keys and content ----

// For a template version or a sender's domain that CONFIG has not brought here yet.
static bool wait_for_config(Job *job)
{
    if (job->delivery->message.delivered < TEMPLATE_DELIVERIES_MAX) {
        outcomes_again(job, AGAIN_TEMPLATE_MS);
        return false;
    }
    Error err = {0};
    error_set(
        &err, ERROR_PERMANENT, "version '%s' of template '%s' is not known here",
        job->rendered->template_version, job->rendered->template_);
    outcomes_settle(job, &err);
    return false;
}

static bool open_job(Batch *batch, Job *job, const KeyWant *wants)
{
    Dispatcher *dispatcher = batch->dispatcher;
    arena_reset(dispatcher->scratch);
    JobOpening opening = {
        .rules = &dispatcher->parts.rules,
        .directory = dispatcher->directory,
        .address_key = wants[0].key,
        .content_key = wants[1].key,
        .scratch = dispatcher->scratch,
        .buf = &dispatcher->buf,
        .now_us = batch->now_us,
        .patient = job->delivery->message.delivered < SENDER_DELIVERIES_MAX,
    };
    return job_open(job, &opening) || wait_for_config(job);
}

static void open_jobs(Batch *batch, const Error *err)
{
    size_t count = batch->count;
    size_t kept = 0;
    Job **jobs = batch->jobs;
    const KeyWant *wants = batch->wants;
    for (size_t i = 0; i < count; i++) {
        if (err != NULL) {
            outcomes_settle(jobs[i], err);
        } else if (open_job(batch, jobs[i], wants + 2 * i)) {
            jobs[kept++] = jobs[i];
        }
    }
    if (kept > 0) {
        batch->count = kept;
        claim(batch);
    }
}

static void on_keyring_resolved(void *ctx, const Error *err)
{
    Batch *batch = ctx;
    open_jobs(batch, err);
}

static void on_turns_timer(uv_timer_t *timer)
{
    intake_held(timer->data);
}

void intake_watch(Dispatcher *dispatcher)
{
    uv_timer_start(&dispatcher->turns, on_turns_timer, TURNS_MS, TURNS_MS);
}

void intake_left(Job *job)
{
    Dispatcher *dispatcher = job->owner;
    map_remove(dispatcher->jobs, job->name);
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
        LOG(LOG_WARN, "unreadable event is buried", log_text("stream", delivery->message.stream),
            log_int("sequence", (int64_t)delivery->message.sequence), log_error(&err));
        delivery_settle(delivery, &err);
        return false;
    }
    if (map_get(dispatcher->jobs, job->name) != NULL) {
        // The same event again while the first delivery of it is still being sent here.
        metric_add(dispatcher->metrics.again, 1);
        delivery_again(delivery, AGAIN_SELF_MS);
        return false;
    }
    map_put(dispatcher->jobs, job->name, job);
    return true;
}

static Batch *make_batch(Dispatcher *dispatcher, Arena *arena, size_t room)
{
    Batch *batch = arena_zalloc(arena, sizeof *batch);
    batch->dispatcher = dispatcher;
    batch->now_us = clock_now_us();
    batch->jobs = arena_array(arena, room, sizeof *batch->jobs);
    batch->wants = arena_array(arena, 2 * room, sizeof *batch->wants);
    return batch;
}

static void add_job(Batch *batch, Job *job)
{
    batch->wants[2 * batch->count] = key_want_of(job->key.tenant, job->rendered->address);
    batch->wants[2 * batch->count + 1] = key_want_of(job->key.tenant, job->rendered->content);
    batch->jobs[batch->count++] = job;
}

static void resolve(Batch *batch)
{
    keyring_resolve(
        batch->dispatcher->keyring, batch->wants, 2 * batch->count, on_keyring_resolved, batch);
}

void intake_batch(DispatcherLane *lane, Delivery **deliveries, size_t count)
{
    Dispatcher *dispatcher = lane->dispatcher;
    Arena *arena = deliveries[0]->arena;
    Batch *batch = make_batch(dispatcher, arena, count);
    Job *jobs = arena_array(arena, count, sizeof *jobs);
    for (size_t i = 0; i < count; i++) {
        if (!admit(lane, &jobs[i], deliveries[i], batch->now_us)) {
            continue;
        }
        Turn turn = turns_take(lane, &jobs[i]);
        jobs[i].postponed = turn == TURN_POSTPONED;
        if (turn != TURN_HELD) {
            add_job(batch, &jobs[i]);
        }
    }
    if (batch->count > 0) {
        resolve(batch);
    }
}

void intake_held(Dispatcher *dispatcher)
{
    int64_t now_us = clock_mono_us();
    for (int i = 0; i < LANES && !dispatcher->stopping; i++) {
        DispatcherLane *lane = &dispatcher->lanes[i];
        turns_look(lane, now_us);
        Job **jobs = NULL;
        size_t count;
        while ((count = turns_next(lane, dispatcher->parts.batch_max, &jobs)) > 0) {
            Batch *batch = make_batch(dispatcher, jobs[0]->delivery->arena, count);
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

// ---- claim ----

// A deferred attempt that uses no rung of the ladder.
static void postpone(Job *job)
{
    static const char WHY[] = "its tenant's mails take long, and too many of them wait already";
    SendResult result = {
        .state = SEND_ANSWERED, .reply = REPLY_THROTTLED, .text = {WHY, sizeof WHY - 1}};
    const Dispatcher *dispatcher = job->owner;
    metric_add(dispatcher->metrics.postponed, 1);
    job_outcome(job, &dispatcher->parts.rules, &result, clock_now_us());
    outcomes_add(job);
}

void intake_begin(Job *job)
{
    Dispatcher *dispatcher = job->owner;
    job->claimed = true;
    if (job->decided) {
        outcomes_add(job);
        return;
    }
    if (dispatcher->stopping) {
        job->releasing = true;
        outcomes_add(job);
        return;
    }
    if (job->postponed) {
        postpone(job);
        return;
    }
    // Begun only while three quarters of the lease are left to run: the last quarter is for the
    // answer, and outcomes_renew() makes it longer when the vendor is slow.
    job->mail.give_up_at_ms = job->mail.held_until_ms - (uint64_t)dispatcher->parts.lease_ms / 4;
    job->mail.tenant = job->key.tenant;
    job->mail.on_done = outcomes_on_sent;
    job->mail.ctx = job;
    // That of the stream, which may be lower than the priority's (common/model/rules/fair_share.h).
    job->mail.lane = ((const DispatcherLane *)job->lane)->lane;
    // Killed from here until the outcome is committed: unknown (dispatcher.h; test_kill.py).
    dispatcher->parts.vendor.send(dispatcher->parts.vendor.self, &job->mail);
}

static const LedgerKey **keys_of(Arena *arena, Job *const *jobs, size_t count)
{
    const LedgerKey **keys = arena_array(arena, count, sizeof(LedgerKey *));
    for (size_t i = 0; i < count; i++) {
        keys[i] = &jobs[i]->key;
    }
    return keys;
}

static LedgerClaim claim_of(const Batch *batch)
{
    const Dispatcher *dispatcher = batch->dispatcher;
    return (LedgerClaim){dispatcher->owner, dispatcher->parts.lease_ms, batch->now_us};
}

static void note_lease(Batch *batch, Job *job)
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
    job->row = job->conflict.row;
    job->row.state = LEDGER_PARKED;
    job->row.finished_at_us = parked_at_us;
    job->row.unknown_count = hit->unknown_count;
    metric_add(dispatcher->metrics.parked, 1);
    LOG(LOG_WARN, "mail with an unknown outcome is parked",
        log_str("notification", job->key.notification_id), log_str("tenant", job->key.tenant),
        log_int("attempt", job->key.attempt));
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
        if (hit.settled) { // it is sent, which its redelivery finds and tells
            metric_add(dispatcher->metrics.settled, 1);
            continue;
        }
        job->recorded = true;
        if (parked) {
            parked_now(job, &hit);
        } else {
            metric_add(
                dispatcher->metrics.unknown, hit.unknown_count > job->row.unknown_count ? 1 : 0);
            job->row.unknown_count = hit.unknown_count;
        }
    }
}

static void on_taken_over(void *ctx, DbTxn *txn, const Error *err)
{
    Batch *batch = ctx;
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
        bool hit = job->recorded;
        job->recorded = false;
        if (err != NULL) {
            outcomes_settle(job, err);
        } else if (!hit) {
            outcomes_again(job, AGAIN_RACE_MS); // another process was faster, or it is settled
        } else if (i < takes) {
            intake_begin(job);
        } else {
            outcomes_publish(job);
        }
    }
}

// Claims without a living holder, in one transaction: released ones and our own are begun; the
// others have an unknown outcome, which the policy decides.
static void take_over(Batch *batch)
{
    Dispatcher *dispatcher = batch->dispatcher;
    DbTxn *txn = db_txn_new(dispatcher->parts.pool);
    LedgerClaim held = claim_of(batch);
    const LedgerKey **keys = keys_of(db_txn_arena(txn), batch->jobs, batch->count);
    for (size_t i = 0; i < batch->count; i++) {
        note_lease(batch, batch->jobs[i]);
    }
    if (batch->takes > 0) {
        ledger_add_take_over(txn, keys, batch->takes, &held);
    }
    if (batch->takes < batch->count) {
        ledger_add_park(txn, keys + batch->takes, batch->count - batch->takes, &held);
    }
    db_txn_submit(txn, on_taken_over, batch);
}

static bool is_released_or_own(const Dispatcher *dispatcher, const LedgerConflict *conflict)
{
    // Ours, and not in flight here: its claim was committed without our hearing of it, so it was
    // never sent.
    return conflict->owner.len == 0 || str_eq(conflict->owner, dispatcher->owner);
}

// Somebody was just inserting the row; if it stays out of sight, it is another tenant's, and the
// event is wrong.
static void look_again(Job *job)
{
    if (job->delivery->message.delivered < RACE_DELIVERIES_MAX) {
        outcomes_again(job, AGAIN_RACE_MS);
        return;
    }
    Error err = {0};
    error_set(
        &err, ERROR_PERMANENT,
        "the notification's row in the ledger is not of tenant '" STR_FMT "'",
        STR_ARG(job->key.tenant));
    outcomes_settle(job, &err);
}

typedef enum Course { COURSE_DONE, COURSE_BEGIN, COURSE_TAKE, COURSE_PARK } Course;

// What the ledger's row means for a job that could not be claimed.
static Course judge(Dispatcher *dispatcher, Job *job)
{
    if (!job->has_conflict) {
        return COURSE_BEGIN;
    }
    const LedgerConflict *conflict = &job->conflict;
    if (conflict->row.state == LEDGER_NONE) {
        look_again(job);
        return COURSE_DONE;
    }
    if (conflict->row.state != LEDGER_CLAIMED) {
        metric_add(dispatcher->metrics.refused, 1);
        job->row = conflict->row;
        job->key.attempt = conflict->attempt;
        outcomes_publish(job); // nothing is sent; a crash may have come between the commit and this
        return COURSE_DONE;
    }
    job->row.unknown_count = conflict->row.unknown_count;
    if (is_released_or_own(dispatcher, conflict)) {
        return COURSE_TAKE;
    }
    if (conflict->wait_ms > 0) {
        outcomes_again(job, conflict->wait_ms + AGAIN_RACE_MS);
        return COURSE_DONE;
    }
    return outcomes_policy(job) == UNKNOWN_PARK && !job->decided ? COURSE_PARK : COURSE_TAKE;
}

static void sort_out(Batch *batch)
{
    Dispatcher *dispatcher = batch->dispatcher;
    size_t count = batch->count;
    Job **jobs = batch->jobs;
    // The next transaction's list, made while the arena surely lives; parked ones are filled in
    // from the end.
    Batch *next = arena_zalloc(jobs[0]->delivery->arena, sizeof *next);
    *next = *batch;
    next->jobs = arena_array(jobs[0]->delivery->arena, count, sizeof *next->jobs);
    size_t takes = 0;
    size_t parks = 0;
    for (size_t i = 0; i < count; i++) {
        Job *job = jobs[i];
        Course course = judge(dispatcher, job);
        if (course == COURSE_BEGIN) {
            intake_begin(job);
        } else if (course == COURSE_TAKE) {
            next->jobs[takes++] = job;
        } else if (course == COURSE_PARK) {
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
    Arena *arena = job->delivery->arena;
    job->has_conflict = true;
    job->conflict = *conflict;
    job->conflict.owner = keep(arena, conflict->owner);
    LedgerRow *row = &job->conflict.row;
    row->vendor = keep(arena, row->vendor);
    row->vendor_message_id = keep(arena, row->vendor_message_id);
    row->code = keep(arena, row->code);
    row->enhanced = keep(arena, row->enhanced);
    row->reply = keep(arena, row->reply);
}

// A row that Postgres cannot take must not hold up the others of its batch.
static void claim_one_by_one(Batch *batch)
{
    size_t count = batch->count;
    Job **jobs = batch->jobs;
    for (size_t i = 0; i < count; i++) {
        Batch *one = arena_zalloc(jobs[i]->delivery->arena, sizeof *one);
        *one = (Batch){
            .dispatcher = batch->dispatcher, .jobs = &jobs[i], .count = 1, .now_us = batch->now_us};
        claim(one);
    }
}

static void claim_failed(Batch *batch, const Error *err)
{
    size_t count = batch->count;
    Job **jobs = batch->jobs;
    if (err->kind == ERROR_PERMANENT && count > 1) {
        claim_one_by_one(batch);
        return;
    }
    if (err->kind != ERROR_CANCELLED) {
        LOG(LOG_WARN, "claims are not committed; the deliveries come again",
            log_int("count", (int64_t)count), log_error(err));
    }
    for (size_t i = 0; i < count; i++) {
        outcomes_settle(jobs[i], err);
    }
}

static void on_claimed(void *ctx, DbTxn *txn, const Error *err)
{
    Batch *batch = ctx;
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
    sort_out(batch);
}

static void claim(Batch *batch)
{
    Dispatcher *dispatcher = batch->dispatcher;
    DbTxn *txn = db_txn_new(dispatcher->parts.pool);
    LedgerClaim held = claim_of(batch);
    for (size_t i = 0; i < batch->count; i++) {
        note_lease(batch, batch->jobs[i]);
    }
    ledger_add_claim(
        txn, keys_of(db_txn_arena(txn), batch->jobs, batch->count), batch->count, &held);
    // Killed after its commit and before the send: unknown (dispatcher.h; test_kill.py).
    db_txn_submit(txn, on_claimed, batch);
}
