// SPDX-License-Identifier: Apache-2.0
#include "common/recipients/people_projector.h"

#include <stdlib.h>

#include "common/bus/consume/projector.h"
#include "common/recipients/people_sql.h"

enum { FLUSH_MS = 5 }; // a writer waits for it (people_wait.h)

struct People {
    PeopleOptions options;
    Projector *projector;
    PeopleFold *fold;
    uint64_t tails_seen; // losses whose effect is written
    uint64_t tails_written;
    Metric *folded;
    Metric *unreadable;
};

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
    people_fold_clear(people->fold);
    if (txn != NULL) { // else dropped: folded again
        people->tails_seen = people->tails_written;
    }
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
        metrics, "stentor_ingest_people_events_total", "result=\"folded\"",
        "Events read from PEOPLE");
    people->unreadable = metrics_counter(
        metrics, "stentor_ingest_people_events_total", "result=\"unreadable\"",
        "Events read from PEOPLE");
    metrics_gauge_fn(
        metrics, "stentor_ingest_people_lag", "", "Events of PEOPLE that are not in the tables yet",
        read_lag, people);
    metrics_gauge_fn(
        metrics, "stentor_ingest_people_active", "",
        "1: this process writes people.*; 0: it stands by", read_active, people);
    metrics_gauge_fn(
        metrics, "stentor_ingest_people_stalled", "",
        "1: the projection has stopped and needs an operator; the log says why", read_stalled,
        people);
}

// ---- start and stop ----

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
    ProjectorOptions projector = {
        .name = "people",
        .stage = "ingest",
        .schema = "people",
        .streams = streams,
        .database_url = options->database_url,
        .pool = options->pool,
        .flush_max = PEOPLE_FLUSH_MAX,
        .flush_bytes = PEOPLE_FLUSH_BYTES,
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

void people_stop(People *people, void (*on_stopped)(void *ctx), void *ctx)
{
    projector_stop(people->projector, on_stopped, ctx);
}

void people_free(People *people)
{
    projector_free(people->projector);
    people_fold_free(people->fold);
    free(people);
}
