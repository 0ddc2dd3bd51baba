// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/inbox/feed_projector.h"

#include <stdlib.h>

#include "common/bus/consume/projector.h"
#include "common/feed/feed_sql.h"

enum { FLUSH_MS = 5 }; // a client waits for it

struct FeedProjector {
    FeedProjectorOptions options;
    Projector *projector;
    FeedFold *fold;
    uint64_t tails_seen; // losses whose effect is written
    uint64_t tails_written;
    Metric *folded, *unreadable;
};

static bool on_projector_fold(void *ctx, const BusMessage *message, Arena *arena, Error *err)
{
    FeedProjector *feed = ctx;
    bool folded = feed_fold_event(feed->fold, message, arena, err);
    metric_add(folded ? feed->folded : feed->unreadable, 1);
    return folded;
}

// Killed before the COMMIT: neither rows nor position are there, and the events are folded again,
// here or by the stand-by. Killed after it: the position says so (test_inapp.py).
static void on_projector_write(void *ctx, DbTxn *txn)
{
    FeedProjector *feed = ctx;
    feed->tails_written = projector_tails_lost(feed->projector);
    if (feed->tails_written > feed->tails_seen) {
        feed_sql_forget_tail(feed->fold, txn);
    }
    feed_sql_write(feed->fold, true, txn);
}

static void on_projector_committed(void *ctx, DbTxn *txn)
{
    FeedProjector *feed = ctx;
    feed_fold_clear(feed->fold);
    if (txn != NULL) { // else dropped: folded again
        feed->tails_seen = feed->tails_written;
        feed->options.on_committed(feed->options.ctx);
    }
}

static double read_lag(void *ctx)
{
    const FeedProjector *feed = ctx;
    return (double)projector_lag(feed->projector);
}

static double read_active(void *ctx)
{
    return feed_projector_active(ctx) ? 1 : 0;
}

static double read_stalled(void *ctx)
{
    const FeedProjector *feed = ctx;
    return projector_failure(feed->projector) != NULL ? 1 : 0;
}

static void register_metrics(FeedProjector *feed, Metrics *metrics)
{
    // clang-format off
    feed->folded = metrics_counter(metrics, "stentor_gateway_feed_events_total", "result=\"folded\"", "Events read from FEED");
    feed->unreadable = metrics_counter(metrics, "stentor_gateway_feed_events_total", "result=\"unreadable\"", "Events read from FEED");
    metrics_gauge_fn(metrics, "stentor_gateway_feed_lag", "", "Events of FEED that are not in the tables yet", read_lag, feed);
    metrics_gauge_fn(metrics, "stentor_gateway_feed_active", "", "1: this process writes feed.*; 0: it stands by", read_active, feed);
    metrics_gauge_fn(metrics, "stentor_gateway_feed_stalled", "", "1: the projection has stopped and needs an operator; the log says why", read_stalled, feed);
    // clang-format on
}

FeedProjector *feed_projector_new(const FeedProjectorOptions *options)
{
    static const char *const streams[] = {"FEED", NULL};
    static const ProjectorHandlers handlers = {
        .fold = on_projector_fold,
        .write = on_projector_write,
        .committed = on_projector_committed};
    FeedProjector *feed = xcalloc(1, sizeof *feed);
    feed->options = *options;
    feed->fold = feed_fold_new();
    ProjectorOptions projector = {
        .name = "feed",
        .stage = "gateway",
        .schema = "feed",
        .streams = streams,
        .database_url = options->database_url,
        .pool = options->pool,
        .flush_max = FEED_FLUSH_MAX,
        .flush_bytes = FEED_FLUSH_BYTES,
        .flush_ms = FLUSH_MS,
    };
    feed->projector = projector_new(options->bus, &projector, &handlers, feed);
    register_metrics(feed, options->metrics);
    return feed;
}

bool feed_projector_active(const FeedProjector *feed)
{
    return projector_active(feed->projector);
}

void feed_projector_stop(FeedProjector *feed, void (*on_stopped)(void *ctx), void *ctx)
{
    projector_stop(feed->projector, on_stopped, ctx);
}

void feed_projector_free(FeedProjector *feed)
{
    projector_free(feed->projector);
    feed_fold_free(feed->fold);
    free(feed);
}
