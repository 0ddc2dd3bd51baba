// SPDX-License-Identifier: Apache-2.0
#include "common/history/rebuild.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/bus/consume/projector.h"
#include "common/history/event_row.h"
#include "common/history/fold.h"
#include "common/history/history_sql.h"
#include "common/history/hold.h"
#include "common/history/passed.h"

// A flush, a batch of its readers and what is ripe name at most 4,096 tenants, each event perhaps
// another.
enum {
    FLUSH_MAX = 3000,
    FLUSH_MS = 20,
    PASSED_MAX = 256 * 1024 * 1024,
    HOLD_BYTES_MAX = 48 * 1024 * 1024,
    HOLD_US = 30 * 1000 * 1000, // of the streams' time: no service reads these tables meanwhile
    STEP = 512,                 // events of STATUS: about what its reader hands over at once
};

const char *const history_streams[HISTORY_STREAM_COUNT + 1] = {
    "REQUEST_CRITICAL", "REQUEST_HIGH", "REQUEST_NORMAL", "REQUEST_LOW", "STATUS", NULL};

struct HistoryRebuild {
    HistoryRebuildOptions options;
    Projector *projector;
    HistorySql sql;
    Fold *fold;
    Fold *air;  // of the flush that is under way; they take turns
    bool apart; // its attempts are in a transaction of their own
    HistoryMonths months;
    uint64_t events;
    uint64_t unreadable;
    uint64_t next[HISTORY_STREAM_COUNT];
    int64_t missing_before_us;
    HistoryPassed passed;
    Hold *hold;
    int64_t read_at_us[HISTORY_STREAM_COUNT]; // how far each is read: when its last was stored
    int64_t step_us; // of the streams' time that the last STEP events of STATUS were
    int64_t step_at_us;
    int step_count;
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

static bool is_behind(const HistoryUntil *until, int stream, const BusMessage *message)
{
    return until != NULL && message->sequence > until[stream].sequence &&
           (until[stream].stored_at_us == 0 || message->stored_at_us > until[stream].stored_at_us);
}

// Nothing is deleted from within these streams, so a jump is a loss: most likely the clock has
// trimmed what the live projection had read and this one had not.
static void note_jump(HistoryRebuild *rebuild, int stream, const BusMessage *message)
{
    uint64_t first = rebuild->options.first[stream];
    uint64_t next = rebuild->next[stream] > first ? rebuild->next[stream] : first;
    if (message->sequence > next && message->stored_at_us > rebuild->missing_before_us) {
        rebuild->missing_before_us = message->stored_at_us;
    }
    rebuild->next[stream] = message->sequence + 1;
}

static void note_passed(
    HistoryRebuild *rebuild, int stream, const BusMessage *message, Arena *arena)
{
    const uint64_t *last = rebuild->options.last;
    HistoryRow row;
    AttemptRow attempt;
    if (stream != STATUS_STREAM && event_row_read(message, arena, &row, &attempt, NULL)) {
        history_passed_note(
            &rebuild->passed, row.id, message->sequence, last != NULL ? last[stream] : 0);
    }
}

static void note_read(HistoryRebuild *rebuild, int stream, const BusMessage *message)
{
    rebuild->read_at_us[stream] = message->stored_at_us;
    if (stream == STATUS_STREAM && ++rebuild->step_count == STEP) {
        rebuild->step_us =
            rebuild->step_at_us != 0 ? message->stored_at_us - rebuild->step_at_us : 0;
        rebuild->step_at_us = message->stored_at_us;
        rebuild->step_count = 0;
    }
}

static bool fold_message(HistoryRebuild *rebuild, const BusMessage *message, Arena *arena)
{
    Error unreadable;
    int stream = find_stream(message);
    note_read(rebuild, stream, message);
    if (is_behind(rebuild->options.until, stream, message)) {
        note_passed(rebuild, stream, message, arena);
        return true;
    }
    note_jump(rebuild, stream, message);
    fold_set_now(rebuild->fold, message->stored_at_us);
    bool folded = fold_event(rebuild->fold, message, arena, &unreadable);
    rebuild->events += folded ? 1 : 0;
    rebuild->unreadable += folded ? 0 : 1;
    return true;
}

static bool on_projector_fold(void *ctx, const BusMessage *message, Arena *arena, Error *err)
{
    (void)err;
    return fold_message(ctx, message, arena);
}

static bool has_read(const HistoryRebuild *rebuild, int stream)
{
    return projector_has_read(rebuild->projector, history_streams[stream]);
}

// Time is that of the streams: a request waits until STATUS is read as far as it and its span.
// Then, or where STATUS ends, no status of it comes soon. Where memory ends, the oldest is the one
// whose end is the least near.
static int64_t stream_time_us(const HistoryRebuild *rebuild)
{
    bool full = hold_bytes(rebuild->hold) > HOLD_BYTES_MAX / 4 * 3;
    return full || has_read(rebuild, STATUS_STREAM) ? INT64_MAX
                                                    : rebuild->read_at_us[STATUS_STREAM];
}

static int on_projector_wait(void *ctx)
{
    const HistoryRebuild *rebuild = ctx;
    return fold_wait_ms(rebuild->fold, stream_time_us(rebuild));
}

static bool on_projector_held(void *ctx, const char *stream, ProjectorPlace *ret_before)
{
    const HistoryRebuild *rebuild = ctx;
    HoldPlace before;
    if (!hold_before(rebuild->hold, stream, &before)) {
        return false;
    }
    *ret_before = (ProjectorPlace){before.sequence, before.stored_at_us};
    return true;
}

// A status that is read before its request is a row that is written twice. So STATUS follows the
// requests, by a step, and they run ahead of it until half of the memory is used. Never does each
// wait for the other: a request's stream that is behind STATUS and its step is read.
static bool is_ahead(const HistoryRebuild *rebuild, int stream)
{
    int64_t status_us = rebuild->read_at_us[STATUS_STREAM] + rebuild->step_us;
    if (stream != STATUS_STREAM) {
        return hold_bytes(rebuild->hold) > HOLD_BYTES_MAX / 2 &&
               rebuild->read_at_us[stream] > status_us;
    }
    bool ahead = false;
    for (int i = 0; i < STATUS_STREAM; i++) {
        ahead = ahead || (!has_read(rebuild, i) && rebuild->read_at_us[i] <= status_us);
    }
    return ahead;
}

static bool on_projector_ahead(void *ctx, const char *stream)
{
    const HistoryRebuild *rebuild = ctx;
    int at = 0;
    while (strcmp(history_streams[at], stream) != 0) {
        at++;
    }
    return !has_read(rebuild, STATUS_STREAM) && is_ahead(rebuild, at);
}

static void on_projector_begin(void *ctx)
{
    HistoryRebuild *rebuild = ctx;
    Fold *fold = rebuild->fold;
    fold_ripen(fold, stream_time_us(rebuild));
    rebuild->fold = rebuild->air;
    rebuild->air = fold;
    rebuild->apart = false;
}

// A table that must be made first is one that both parts need.
static bool on_projector_write_beside(void *ctx, DbTxn *txn)
{
    HistoryRebuild *rebuild = ctx;
    size_t attempts = 0;
    (void)fold_attempts(rebuild->air, &attempts);
    rebuild->apart = attempts > 0 && history_months_known(&rebuild->months, rebuild->air);
    if (rebuild->apart) {
        history_write_attempts(&rebuild->sql, rebuild->air, txn);
    }
    return rebuild->apart;
}

static void on_projector_write(void *ctx, DbTxn *txn)
{
    HistoryRebuild *rebuild = ctx;
    history_months_write(&rebuild->sql, &rebuild->months, rebuild->air, txn);
    history_write_notifications(&rebuild->sql, rebuild->air, txn);
    if (!rebuild->apart) {
        history_write_attempts(&rebuild->sql, rebuild->air, txn);
    }
}

static void on_projector_committed(void *ctx, DbTxn *txn)
{
    HistoryRebuild *rebuild = ctx;
    if (txn != NULL) {
        history_months_committed(&rebuild->months);
    } else {
        history_months_forget(&rebuild->months);
        fold_forget(rebuild->fold);
        memset(rebuild->read_at_us, 0, sizeof rebuild->read_at_us);
    }
    fold_clear(rebuild->air);
}

HistoryRebuild *history_rebuild_new(Bus *bus, const HistoryRebuildOptions *options)
{
    static const ProjectorHandlers handlers = {
        .fold = on_projector_fold,
        .begin = on_projector_begin,
        .write_beside = on_projector_write_beside,
        .write = on_projector_write,
        .committed = on_projector_committed,
        .wait_ms = on_projector_wait,
        .held = on_projector_held,
        .ahead = on_projector_ahead};
    HistoryRebuild *rebuild = xcalloc(1, sizeof(*rebuild));
    rebuild->options = *options;
    rebuild->fold = fold_new();
    rebuild->air = fold_new();
    rebuild->hold = hold_new(HOLD_BYTES_MAX, HOLD_US);
    fold_hold_back(rebuild->fold, rebuild->hold, NULL); // no service reads these tables
    fold_hold_back(rebuild->air, rebuild->hold, NULL);
    history_passed_init(&rebuild->passed, PASSED_MAX);
    history_sql_init(&rebuild->sql, options->schema, HISTORY_LATE_NOWHERE);
    for (int i = 0; i < HISTORY_STREAM_COUNT; i++) {
        rebuild->next[i] = 1;
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
        .readers = options->readers,
        .readers_ctx = options->readers_ctx,
    };
    rebuild->projector = projector_new(bus, &projector, &handlers, rebuild);
    return rebuild;
}

const char *history_rebuild_failure(const HistoryRebuild *rebuild)
{
    return projector_failure(rebuild->projector);
}

bool history_rebuild_caught_up(const HistoryRebuild *rebuild)
{
    return projector_caught_up(rebuild->projector);
}

bool history_rebuild_reached(const HistoryRebuild *rebuild, const uint64_t *sequences)
{
    for (int i = 0; i < HISTORY_STREAM_COUNT; i++) {
        if (projector_position(rebuild->projector, history_streams[i]) < sequences[i]) {
            return false;
        }
    }
    return true;
}

uint64_t history_rebuild_position(const HistoryRebuild *rebuild, int stream)
{
    return projector_position(rebuild->projector, history_streams[stream]);
}

uint64_t history_rebuild_events(const HistoryRebuild *rebuild)
{
    return rebuild->events;
}

Str history_rebuild_passed(const HistoryRebuild *rebuild)
{
    return buf_view(&rebuild->passed.ids);
}

bool history_rebuild_passed_cut(const HistoryRebuild *rebuild)
{
    return rebuild->passed.cut;
}

uint64_t history_rebuild_unreadable(const HistoryRebuild *rebuild)
{
    return rebuild->unreadable;
}

int64_t history_rebuild_missing_before_us(const HistoryRebuild *rebuild)
{
    return rebuild->missing_before_us;
}

void history_rebuild_stop(HistoryRebuild *rebuild, void (*on_stopped)(void *ctx), void *ctx)
{
    hold_release(rebuild->hold);
    projector_stop(rebuild->projector, on_stopped, ctx);
}

void history_rebuild_free(HistoryRebuild *rebuild)
{
    projector_free(rebuild->projector);
    fold_free(rebuild->fold);
    fold_free(rebuild->air);
    hold_free(rebuild->hold);
    history_passed_done(&rebuild->passed);
    free(rebuild);
}
