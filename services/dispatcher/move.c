// SPDX-License-Identifier: Apache-2.0
// Claims on their way to another vendor: mails that were surely not sent, gathered for a moment,
// moved by one statement, then sent there. No attempt is used. A claim that cannot be moved
// (Postgres away, taken over, settled by a callback meanwhile) gets the outcome that its first
// vendor gave it, and the ledger says what that is worth.
#include "common/base/crash.h"
#include "common/base/log.h"
#include "services/dispatcher/dispatcher_internal.h"
#include "services/dispatcher/routing/vendor_mail.h"

// Claims in one transaction; lives in its arena.
typedef struct Moving {
    Dispatcher *dispatcher;
    Job **jobs;
    size_t count;
} Moving;

static void leave(Job *job)
{
    if (job->state == JOB_MOVING) {
        next_not_moved(job);
    }
}

static void note_moved(Dispatcher *dispatcher, const PGresult *res)
{
    for (int n = 0; n < db_rows(res); n++) {
        LedgerHit hit = ledger_hit(res, (size_t)n);
        char name[JOB_NAME_SIZE];
        Job *job = map_get(
            dispatcher->jobs, job_name(hit.notification_id, hit.attempt, name, sizeof name));
        if (job != NULL && job->state == JOB_MOVING && outcomes_move(job, JOB_CLAIMED)) {
            job->route.at = job->moves_to;
            job->place = job->next_place;
            metric_add(dispatcher->metrics.moved, 1);
        }
    }
}

static void on_moved(void *ctx, DbTxn *txn, const Error *err)
{
    Moving *moving = ctx;
    Dispatcher *dispatcher = moving->dispatcher;
    if (err != NULL) {
        LOG(LOG_WARN, "mails could not be moved to another vendor; they are deferred",
            log_int("count", (int64_t)moving->count), log_error(err));
    } else {
        CRASH_POINT("dispatcher.moved");
        note_moved(dispatcher, db_txn_result(txn, 0));
    }
    for (size_t i = 0; i < moving->count; i++) {
        Job *job = moving->jobs[i];
        if (job->state != JOB_CLAIMED) {
            leave(job);
        } else if (dispatcher->stopping) {
            record_add(job, JOB_RELEASING);
        } else {
            next_moved(job);
        }
    }
}

static void submit(Dispatcher *dispatcher)
{
    DbTxn *txn = db_txn_new(dispatcher->parts.pool);
    Arena *arena = db_txn_arena(txn);
    Moving *moving = arena_zalloc(arena, sizeof *moving);
    moving->dispatcher = dispatcher;
    moving->jobs = arena_array(arena, FLUSH_MAX, sizeof(Job *));
    const LedgerKey *keys[FLUSH_MAX];
    const LedgerPlace *places[FLUSH_MAX];
    while (moving->count < FLUSH_MAX && dispatcher->moving.count > 0) {
        Job *job = record_take_first(&dispatcher->moving);
        keys[moving->count] = job->key;
        places[moving->count] = &job->next_place;
        moving->jobs[moving->count++] = job;
    }
    ledger_add_move(txn, keys, places, moving->count, dispatcher->owner);
    db_txn_submit(txn, on_moved, moving);
}

static void on_moves_timer(uv_timer_t *timer)
{
    Dispatcher *dispatcher = timer->data;
    while (dispatcher->moving.count > 0) {
        submit(dispatcher);
    }
}

void move_add(Job *job, size_t target)
{
    Dispatcher *dispatcher = job->owner;
    if (!outcomes_move(job, JOB_MOVING)) {
        return;
    }
    job->moves_to = target;
    job->next_place = vendor_ledger_place(job->route.targets[target], vendor_mail_key(job));
    if (job->last == NULL) {
        static const SendResult waits = {
            .state = SEND_UNSENT, .reply = REPLY_RETRY, .text = {"the vendor fails", 16}};
        job->last = &waits;
    }
    record_append(&dispatcher->moving, job);
    if (!uv_is_active((uv_handle_t *)&dispatcher->moves)) {
        uv_timer_start(&dispatcher->moves, on_moves_timer, FLUSH_MS, 0);
    }
}
