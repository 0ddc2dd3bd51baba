// SPDX-License-Identifier: Apache-2.0
#include "common/recipients/people_wait.h"

#include <stdlib.h>

#include "common/base/clock.h"

enum {
    FIRST_MS = 10, // a fold is gathered for 5 ms, then committed
    LOOK_MS = 15,
};

typedef struct Waiter {
    struct Waiter *next;
    uint64_t sequence;
    int64_t until_us; // monotonic
    bool asked;       // the look that is under way began after it came
    PeopleSeen done;
    void *ctx;
} Waiter;

struct PeopleWait {
    DbPool *pool;
    const DbStatement *position;
    Waiter *waiters;
    uv_timer_t timer; // runs while there are waiters
    bool looking;
    bool closed; // the timer
    bool stopping;
    void (*on_freed)(void *ctx);
    void *freed_ctx;
};

static const DbStatement POSITION = {
    "people_position", "SELECT sequence FROM people.positions WHERE projection = 'people' AND "
                       "stream = 'PEOPLE'"};

// `folded` comes from a look and serves only who waited when it began: a stream that was made again
// or has lost its tail counts from a lower sequence, and an earlier look's position is no answer.
static void answer_waiters(PeopleWait *wait, uint64_t folded, bool all)
{
    int64_t now_us = clock_mono_us();
    for (Waiter **at = &wait->waiters; *at != NULL;) {
        Waiter *waiter = *at;
        bool seen = waiter->asked && waiter->sequence <= folded;
        if (!seen && !all && now_us < waiter->until_us) {
            at = &waiter->next;
            continue;
        }
        *at = waiter->next;
        waiter->done(waiter->ctx, seen);
        free(waiter);
    }
    if (wait->waiters == NULL) {
        uv_timer_stop(&wait->timer);
    }
}

static void finish_free(PeopleWait *wait)
{
    if (wait->closed && !wait->looking) {
        wait->on_freed(wait->freed_ctx);
        free(wait);
    }
}

static void on_look_done(void *ctx, DbTxn *txn, const Error *err)
{
    PeopleWait *wait = ctx;
    wait->looking = false;
    if (wait->stopping) {
        finish_free(wait);
        return;
    }
    uint64_t folded = 0;
    if (err == NULL && db_rows(db_txn_result(txn, 0)) == 1) {
        folded = (uint64_t)db_get_int(db_txn_result(txn, 0), 0, 0);
    }
    answer_waiters(wait, folded, false);
}

static void on_timer_due(uv_timer_t *timer)
{
    PeopleWait *wait = timer->data;
    answer_waiters(wait, 0, false);
    if (wait->waiters == NULL || wait->looking) {
        return;
    }
    wait->looking = true;
    for (Waiter *waiter = wait->waiters; waiter != NULL; waiter = waiter->next) {
        waiter->asked = true;
    }
    DbTxn *txn = db_txn_new(wait->pool);
    (void)db_txn_add(txn, wait->position, NULL);
    db_txn_submit(txn, on_look_done, wait);
}

PeopleWait *people_wait_new(DbPool *pool)
{
    return people_wait_new_for(pool, &POSITION);
}

PeopleWait *people_wait_new_for(DbPool *pool, const DbStatement *position)
{
    PeopleWait *wait = xcalloc(1, sizeof *wait);
    wait->pool = pool;
    wait->position = position;
    (void)uv_timer_init(db_pool_loop(pool), &wait->timer);
    wait->timer.data = wait;
    return wait;
}

void people_wait(PeopleWait *wait, uint64_t sequence, PeopleSeen done, void *ctx)
{
    Waiter *waiter = xcalloc(1, sizeof *waiter);
    *waiter = (Waiter){
        .next = wait->waiters,
        .sequence = sequence,
        .until_us = clock_mono_us() + PEOPLE_PATIENCE_MS * INT64_C(1000),
        .done = done,
        .ctx = ctx,
    };
    wait->waiters = waiter;
    if (!uv_is_active((uv_handle_t *)&wait->timer)) {
        (void)uv_timer_start(&wait->timer, on_timer_due, FIRST_MS, LOOK_MS);
    }
}

static void on_timer_closed(uv_handle_t *handle)
{
    PeopleWait *wait = handle->data;
    wait->closed = true;
    finish_free(wait);
}

void people_wait_free(PeopleWait *wait, void (*on_freed)(void *ctx), void *ctx)
{
    wait->stopping = true;
    wait->on_freed = on_freed;
    wait->freed_ctx = ctx;
    answer_waiters(wait, 0, true);
    uv_close((uv_handle_t *)&wait->timer, on_timer_closed);
}
