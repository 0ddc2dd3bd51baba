// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/find/find_projector.h"

#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/bus/consume/projector.h"
#include "common/find/find_sql.h"
#include "common/ticks/ticks.h"

enum {
    FLUSH_MS = 250, // the larger a flush, the less each entry costs, and nothing waits for one
    TICK_MS = 1000,
    PROGRESS_EVERY_S = 5, // while nothing is folded
    DROP_EVERY_S = 3600,
    DROP_AGAIN_S = 10, // when a reader was in the way, or there is more
    DROP_AT_ONCE = 50,
};

static const int64_t day_us = INT64_C(86400000000);
static const int64_t second_us = 1000000;

// clang-format off
static const DbStatement DROP = {"find_drop_days", "SELECT find.drop_days($1::timestamptz, $2::int4)"};
// clang-format on

struct FindProjector {
    FindProjectorOptions options;
    Projector *projector;
    FindFold *fold;
    FindDays days;
    uv_timer_t tick;
    int in_database;                    // transactions besides the projector's
    int64_t drop_at_us, progress_at_us; // of clock_mono_us()
    bool stopping;
    int open; // projector, timer
    void (*on_stopped)(void *ctx);
    void *ctx;
    Metric *read, *unreadable;
};

static int64_t oldest_us(const FindProjector *find)
{
    return clock_now_us() - find->options.days * day_us;
}

// ---- folding ----

// What cannot be read is history's to bury: the same message would be two dead letters.
static bool on_projector_fold(void *ctx, const BusMessage *message, Arena *arena, Error *err)
{
    FindProjector *find = ctx;
    bool read = find_fold_event(find->fold, message, arena, err);
    metric_add(read ? find->read : find->unreadable, 1);
    return true;
}

// Killed before the COMMIT: neither rows nor position are there, and the events are folded again,
// here or by the stand-by. Killed after it: the position says so.
static void on_projector_write(void *ctx, DbTxn *txn)
{
    FindProjector *find = ctx;
    find_sql_write(find->fold, &find->days, clock_now_us(), txn);
    if (find_fold_as_of_us(find->fold) > 0) {
        find_sql_progress(
            find_fold_as_of_us(find->fold), projector_position(find->projector, "STATUS"), txn);
    }
}

static void on_projector_committed(void *ctx, DbTxn *txn)
{
    FindProjector *find = ctx;
    find_fold_clear(find->fold);
    find_fold_keep(find->fold, oldest_us(find));
    if (txn != NULL) {
        find_days_committed(&find->days);
    } else { // dropped: folded again
        find_days_forget(&find->days);
    }
}

// ---- what a clock brings ----

static void end_when_stopped(FindProjector *find)
{
    if (find->stopping && find->open == 0 && find->in_database == 0) {
        find->stopping = false;
        find->on_stopped(find->ctx);
    }
}

static void on_progress_written(void *ctx, DbTxn *txn, const Error *err)
{
    FindProjector *find = ctx;
    find->in_database--;
    // A flush would notice it too, but there may be none for hours.
    if (err == NULL && db_rows(db_txn_result(txn, 0)) == 0 && !find->stopping) {
        LOG(LOG_INFO, "the search index is made again", log_text("projection", "find"));
        projector_reload(find->projector);
    }
    end_when_stopped(find);
}

int64_t find_projector_current_us(const FindProjector *find)
{
    bool current = find != NULL && projector_active(find->projector) &&
                   bus_connected(find->options.bus) && projector_caught_up(find->projector) &&
                   projector_lag(find->projector) == 0;
    return current ? clock_now_us() : 0;
}

// Only when nothing waits: what is folded says by its own time how fresh the rows are.
static void write_progress(FindProjector *find)
{
    int64_t now_us = clock_mono_us();
    if (now_us < find->progress_at_us || find_projector_current_us(find) == 0) {
        return;
    }
    find->progress_at_us = now_us + PROGRESS_EVERY_S * second_us;
    DbTxn *txn = db_txn_new(find->options.pool);
    db_txn_lazy_commit(txn);
    find_sql_progress(clock_now_us(), projector_position(find->projector, "STATUS"), txn);
    find->in_database++;
    db_txn_submit(txn, on_progress_written, find);
}

static void on_days_dropped(void *ctx, DbTxn *txn, const Error *err)
{
    FindProjector *find = ctx;
    bool more = err != NULL || db_get_int(db_txn_result(txn, 0), 0, 0) >= DROP_AT_ONCE;
    find->in_database--;
    find->drop_at_us = clock_mono_us() + (more ? DROP_AGAIN_S : DROP_EVERY_S) * second_us;
    end_when_stopped(find);
}

static void drop_days(FindProjector *find)
{
    if (clock_mono_us() < find->drop_at_us) {
        return;
    }
    find->drop_at_us = INT64_MAX; // until it is answered
    DbTxn *txn = db_txn_new(find->options.pool);
    DbParams *p = db_txn_add(txn, &DROP, NULL);
    db_time(p, oldest_us(find));
    db_i32(p, DROP_AT_ONCE);
    find->in_database++;
    db_txn_submit(txn, on_days_dropped, find);
}

static void on_tick_timer(uv_timer_t *timer)
{
    ticks_keep(timer);
    FindProjector *find = timer->data;
    if (find->stopping || !projector_active(find->projector)) {
        return;
    }
    if (find->in_database == 0) {
        write_progress(find);
        drop_days(find);
    }
}

// ---- life ----

static double read_lag(void *ctx)
{
    const FindProjector *find = ctx;
    return (double)projector_lag(find->projector);
}

static double read_active(void *ctx)
{
    const FindProjector *find = ctx;
    return projector_active(find->projector) ? 1 : 0;
}

static double read_stalled(void *ctx)
{
    const FindProjector *find = ctx;
    return projector_failure(find->projector) != NULL ? 1 : 0;
}

static void register_metrics(FindProjector *find, Metrics *metrics)
{
    // clang-format off
    find->read = metrics_counter(metrics, "stentor_gateway_find_events_total", "result=\"read\"", "Events of STATUS read for the search index");
    find->unreadable = metrics_counter(metrics, "stentor_gateway_find_events_total", "result=\"unreadable\"", "Events of STATUS read for the search index");
    metrics_gauge_fn(metrics, "stentor_gateway_find_lag", "", "Events of STATUS that are not in the search index yet", read_lag, find);
    metrics_gauge_fn(metrics, "stentor_gateway_find_active", "", "1: this process writes find.*; 0: it stands by", read_active, find);
    metrics_gauge_fn(metrics, "stentor_gateway_find_stalled", "", "1: the projection has stopped and needs an operator; the log says why", read_stalled, find);
    // clang-format on
}

FindProjector *find_projector_new(const FindProjectorOptions *options)
{
    static const char *const streams[] = {"STATUS", NULL};
    static const ProjectorHandlers handlers = {
        .fold = on_projector_fold,
        .write = on_projector_write,
        .committed = on_projector_committed};
    FindProjector *find = xcalloc(1, sizeof *find);
    find->options = *options;
    find->fold = find_fold_new(options->master);
    find_fold_keep(find->fold, oldest_us(find));
    ProjectorOptions projector = {
        .name = "find",
        .stage = "gateway",
        .schema = "find",
        .streams = streams,
        .database_url = options->database_url,
        .pool = options->pool,
        .flush_max = FIND_FLUSH_MAX,
        .flush_bytes = FIND_FLUSH_BYTES,
        .flush_ms = FLUSH_MS,
        .remedy = "stentor rebuild find",
    };
    find->projector = projector_new(options->bus, &projector, &handlers, find);
    find->tick.data = find;
    (void)uv_timer_init(bus_loop(options->bus), &find->tick);
    ticks_start(&find->tick, on_tick_timer, TICK_MS);
    find->open = 2;
    register_metrics(find, options->metrics);
    return find;
}

static void on_projector_stopped(void *ctx)
{
    FindProjector *find = ctx;
    find->open--;
    end_when_stopped(find);
}

static void on_tick_closed(uv_handle_t *handle)
{
    on_projector_stopped(handle->data);
}

void find_projector_stop(FindProjector *find, void (*on_stopped)(void *ctx), void *ctx)
{
    find->stopping = true;
    find->on_stopped = on_stopped;
    find->ctx = ctx;
    uv_close((uv_handle_t *)&find->tick, on_tick_closed);
    projector_stop(find->projector, on_projector_stopped, find);
}

void find_projector_free(FindProjector *find)
{
    if (find != NULL) {
        projector_free(find->projector);
        find_fold_free(find->fold);
        free(find);
    }
}
