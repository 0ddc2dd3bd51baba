// SPDX-License-Identifier: Apache-2.0
#include "common/history/rebuild.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bus/consume/projector.h"
#include "common/history/fold.h"
#include "common/history/history_sql.h"

// A flush and a batch of its readers name at most 4,096 tenants, each event perhaps another.
enum { FLUSH_MAX = 3500, FLUSH_MS = 20 };

const char *const history_streams[HISTORY_STREAM_COUNT + 1] = {
    "REQUEST_CRITICAL", "REQUEST_HIGH", "REQUEST_NORMAL", "REQUEST_LOW", "STATUS", NULL};

struct Refold {
    RefoldOptions options;
    Projector *projector;
    HistorySql sql;
    Fold *fold;
    HistoryMonths months;
    uint64_t events;
    uint64_t unreadable;
    uint64_t next[HISTORY_STREAM_COUNT];
    int64_t missing_before_us;
};

static int find_stream(const BusMessage *message)
{
    int at = 0;
    while (strcmp(history_streams[at], message->stream) != 0) {
        at++;
        assert(at < HISTORY_STREAM_COUNT && "only these are read");
    }
    return at;
}

static bool fold_message(Refold *refold, const BusMessage *message, Arena *arena)
{
    Error unreadable;
    int stream = find_stream(message);
    if (refold->options.until != NULL && message->sequence > refold->options.until[stream]) {
        return true;
    }
    // Nothing is deleted from within these streams, so a jump is a loss: most likely the clock has
    // trimmed what the live projection had read and this one had not.
    if (message->sequence > refold->next[stream] &&
        message->stored_at_us > refold->missing_before_us) {
        refold->missing_before_us = message->stored_at_us;
    }
    refold->next[stream] = message->sequence + 1;
    bool folded = fold_event(refold->fold, message, arena, &unreadable);
    refold->events += folded ? 1 : 0;
    refold->unreadable += folded ? 0 : 1;
    return true;
}

static bool on_projector_fold(void *ctx, const BusMessage *message, Arena *arena, Error *err)
{
    (void)err;
    return fold_message(ctx, message, arena);
}

static void on_projector_write(void *ctx, DbTxn *txn)
{
    Refold *refold = ctx;
    history_months_write(&refold->sql, &refold->months, refold->fold, txn);
    history_write(&refold->sql, refold->fold, txn);
}

static void on_projector_committed(void *ctx, DbTxn *txn)
{
    Refold *refold = ctx;
    if (txn != NULL) {
        history_months_committed(&refold->months);
    } else {
        history_months_forget(&refold->months);
    }
    fold_clear(refold->fold);
}

Refold *refold_new(Bus *bus, const RefoldOptions *options)
{
    static const ProjectorHandlers handlers = {
        .fold = on_projector_fold,
        .write = on_projector_write,
        .committed = on_projector_committed};
    Refold *refold = xcalloc(1, sizeof(*refold));
    refold->options = *options;
    refold->fold = fold_new();
    history_sql_init(&refold->sql, options->schema);
    for (int i = 0; i < HISTORY_STREAM_COUNT; i++) {
        refold->next[i] = options->first[i] > 1 ? options->first[i] : 1;
    }
    ProjectorOptions projector = {
        .name = "history", // what its positions are called after the swap
        .stage = "archiver",
        .lock_name = options->schema,
        .schema = options->schema,
        .streams = history_streams,
        .database_url = options->database_url,
        .pool = options->pool,
        .flush_max = FLUSH_MAX,
        .flush_ms = FLUSH_MS,
    };
    refold->projector = projector_new(bus, &projector, &handlers, refold);
    return refold;
}

const char *refold_failure(const Refold *refold)
{
    return projector_failure(refold->projector);
}

bool refold_caught_up(const Refold *refold)
{
    return projector_caught_up(refold->projector);
}

bool refold_reached(const Refold *refold, const uint64_t *sequences)
{
    for (int i = 0; i < HISTORY_STREAM_COUNT; i++) {
        if (projector_position(refold->projector, history_streams[i]) < sequences[i]) {
            return false;
        }
    }
    return true;
}

uint64_t refold_position(const Refold *refold, int stream)
{
    return projector_position(refold->projector, history_streams[stream]);
}

uint64_t refold_events(const Refold *refold)
{
    return refold->events;
}

uint64_t refold_unreadable(const Refold *refold)
{
    return refold->unreadable;
}

int64_t refold_missing_before_us(const Refold *refold)
{
    return refold->missing_before_us;
}

void refold_stop(Refold *refold, void (*on_stopped)(void *ctx), void *ctx)
{
    projector_stop(refold->projector, on_stopped, ctx);
}

void refold_free(Refold *refold)
{
    projector_free(refold->projector);
    fold_free(refold->fold);
    free(refold);
}
