// SPDX-License-Identifier: Apache-2.0
#include "common/recipients/people_projector.h"

#include <stdlib.h>

#include "common/base/clock.h"
#include "common/bus/consume/projector.h"
#include "common/recipients/people_sql.h"

enum {
    FLUSH_MAX = 500, // of at most PEOPLE_EVENT_MAX: one transaction takes 64 MiB
    FLUSH_MS = 5,    // a writer waits for it
    LOOK_MS = 15,    // a stand-by looks how far the active one is
};

typedef struct Waiter {
    struct Waiter *next;
    uint64_t sequence;
    int64_t until_us; // monotonic
    PeopleSeen done;
    void *ctx;
} Waiter;

struct People {
    PeopleOptions options;
    Projector *projector;
    PeopleFold *fold;
    uint64_t tails_seen; // losses whose effect is written
    uint64_t tails_written;
    uint64_t stored; // sequence that is known to be in the tables
    Waiter *waiters;
    uv_timer_t timer; // runs while there are waiters
    bool looking;
    bool stopping;
    int closing;
    Metric *folded;
    Metric *unreadable;
    void (*on_stopped)(void *ctx);
    void *stopped_ctx;
};

static const DbStatement POSITION = {
    "people_position", "SELECT sequence FROM people.positions WHERE projection = 'people' AND "
                       "stream = 'PEOPLE'"};

// ---- those who wait ----

static void answer_waiters(People *people, bool all)
{
    int64_t now_us = clock_mono_us();
    for (Waiter **at = &people->waiters; *at != NULL;) {
        Waiter *waiter = *at;
        bool seen = waiter->sequence <= people->stored;
        if (!seen && !all && now_us < waiter->until_us) {
            at = &waiter->next;
            continue;
        }
        *at = waiter->next;
        waiter->done(waiter->ctx, seen);
        free(waiter);
    }
    if (people->waiters == NULL) {
        uv_timer_stop(&people->timer);
    }
}

static void finish_stop(People *people)
{
    if (people->closing == 0 && !people->looking) {
        people->on_stopped(people->stopped_ctx);
    }
}

static void on_look_done(void *ctx, DbTxn *txn, const Error *err)
{
    People *people = ctx;
    people->looking = false;
    if (people->stopping) {
        finish_stop(people);
        return;
    }
    if (err == NULL && db_rows(db_txn_result(txn, 0)) == 1) {
        people->stored = (uint64_t)db_get_int(db_txn_result(txn, 0), 0, 0);
    }
    answer_waiters(people, false);
}

// The active process knows by itself; what another one wrote, its stored position tells.
static void look(People *people)
{
    answer_waiters(people, false);
    if (people->waiters == NULL || people->looking) {
        return;
    }
    people->looking = true;
    DbTxn *txn = db_txn_new(people->options.pool);
    (void)db_txn_add(txn, &POSITION, NULL);
    db_txn_submit(txn, on_look_done, people);
}

static void on_timer_due(uv_timer_t *timer)
{
    look(timer->data);
}

void people_wait(People *people, uint64_t sequence, PeopleSeen done, void *ctx)
{
    Waiter *waiter = xcalloc(1, sizeof *waiter);
    *waiter = (Waiter){
        .next = people->waiters,
        .sequence = sequence,
        .until_us = clock_mono_us() + PEOPLE_PATIENCE_MS * INT64_C(1000),
        .done = done,
        .ctx = ctx,
    };
    people->waiters = waiter;
    if (!uv_is_active((uv_handle_t *)&people->timer)) {
        uint64_t first_ms = people_active(people) ? 2 * LOOK_MS : 1;
        (void)uv_timer_start(&people->timer, on_timer_due, first_ms, LOOK_MS);
    }
}

// ---- the projection ----

static bool on_projector_fold(void *ctx, const BusMessage *message, Arena *arena, Error *err)
{
    People *people = ctx;
    bool folded = people_fold_event(people->fold, message, arena, err);
    metric_add(folded ? people->folded : people->unreadable, 1);
    return folded;
}

// Killed before the COMMIT: neither rows nor position are there, and the events are folded again,
// here or by the stand-by. Killed after it: the position says so. test_people.py kills it within an
// import.
static void on_projector_write(void *ctx, DbTxn *txn)
{
    People *people = ctx;
    people->tails_written = projector_tails_lost(people->projector);
    people_sql_write(people->fold, people->tails_written > people->tails_seen, txn);
}

static void on_projector_committed(void *ctx, DbTxn *txn)
{
    People *people = ctx;
    uint64_t last = people_fold_last(people->fold);
    people_fold_clear(people->fold);
    if (txn == NULL) {
        return; // dropped: folded again
    }
    people->tails_seen = people->tails_written;
    people->stored = last;
    answer_waiters(people, false);
}

// ---- metrics ----

static double read_lag(void *ctx)
{
    const People *people = ctx;
    return (double)projector_lag(people->projector);
}

static double read_active(void *ctx)
{
    return people_active(ctx) ? 1 : 0;
}

static double read_stalled(void *ctx)
{
    const People *people = ctx;
    return projector_failure(people->projector) != NULL ? 1 : 0;
}

static void register_metrics(People *people, Metrics *metrics)
{
    people->folded = metrics_counter(
        metrics, "stentor_people_events_total", "result=\"folded\"", "Events read from PEOPLE");
    people->unreadable = metrics_counter(
        metrics, "stentor_people_events_total", "result=\"unreadable\"", "Events read from PEOPLE");
    metrics_gauge_fn(
        metrics, "stentor_people_lag", "", "Events of PEOPLE that are not in the tables yet",
        read_lag, people);
    metrics_gauge_fn(
        metrics, "stentor_people_active", "", "1: this process writes people.*; 0: it stands by",
        read_active, people);
    metrics_gauge_fn(
        metrics, "stentor_people_stalled", "",
        "1: the projection stands still until a person acts; the log says why", read_stalled,
        people);
}

// ---- life ----

People *people_new(const PeopleOptions *options)
{
    static const char *const streams[] = {"PEOPLE", NULL};
    static const ProjectorHandlers handlers = {
        .fold = on_projector_fold,
        .write = on_projector_write,
        .committed = on_projector_committed};
    People *people = xcalloc(1, sizeof *people);
    people->options = *options;
    people->fold = people_fold_new();
    (void)uv_timer_init(bus_loop(options->bus), &people->timer);
    people->timer.data = people;
    ProjectorOptions projector = {
        .name = "people",
        .schema = "people",
        .streams = streams,
        .database_url = options->database_url,
        .pool = options->pool,
        .flush_max = FLUSH_MAX,
        .flush_ms = FLUSH_MS,
    };
    people->projector = projector_new(options->bus, &projector, &handlers, people);
    register_metrics(people, options->metrics);
    return people;
}

bool people_active(const People *people)
{
    return projector_active(people->projector);
}

static void on_timer_closed(uv_handle_t *handle)
{
    People *people = handle->data;
    people->closing--;
    finish_stop(people);
}

static void on_projector_stopped(void *ctx)
{
    People *people = ctx;
    people->closing--;
    finish_stop(people);
}

void people_stop(People *people, void (*on_stopped)(void *ctx), void *ctx)
{
    people->on_stopped = on_stopped;
    people->stopped_ctx = ctx;
    people->stopping = true;
    people->closing = 2;
    answer_waiters(people, true);
    uv_close((uv_handle_t *)&people->timer, on_timer_closed);
    projector_stop(people->projector, on_projector_stopped, people);
}

void people_free(People *people)
{
    projector_free(people->projector);
    people_fold_free(people->fold);
    free(people);
}
