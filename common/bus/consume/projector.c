// SPDX-License-Identifier: Apache-2.0
// A projector's states: no lock (STANDBY) -> lock: read positions (LOADING) -> readers from there
// (FOLDING) -> one flush at a time (FLUSHING; what arrives waits in the readers, or is the next
// flush's) -> FOLDING. Whatever goes wrong drops the fold and begins again at LOADING; only
// an installation's fault (FAILED) needs an operator.
//
// Killed before the commit: nothing happened, the same events are folded again. Killed after it:
// rows and sequences are both there. A twin that lost the lock unknowingly: its UPDATE meets
// another sequence, sets NULL into a NOT NULL column, and Postgres refuses the whole transaction.
// Killed while the fold holds events back: their position was not stored, so they are read again.
// Killed while a flush is under way and the next one is being folded: the position is that before
// both. (projector_nats_pg_test: a_late_twin_cannot_write, a_drop_folds_again,
// a_lost_tail_is_folded_again, held_events_are_folded_again_after_a_drop,
// what_is_folded_during_a_flush_is_the_next_ones)
#include "common/bus/consume/projector.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/crash.h"
#include "common/base/log.h"
#include "common/bus/consume/dead_letter.h"
#include "common/bus/consume/positions.h"
#include "common/bus/consume/projector_internal.h"
#include "common/bus/consume/reader.h"
#include "common/bus/jetstream/bus_internal.h"
#include "common/db/lock.h"

enum {
    FLUSH_DEFAULT = 2000,
    FLUSH_DEFAULT_MS = 20,
    RETRY_MIN_MS = 100,
    READ_BATCH = 512,
    GATHERED_MS = 1,   // what came after a rest has waited for more already
    POSITION_MS = 250, // when nothing is written but the positions
};

static void start_load(Projector *p);
static void start_flush(Projector *p);

// ---- folding ----

static void on_letter_acked(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    (void)sequence;
    (void)duplicate;
    Projector *p = ctx;
    p->dead_letters_open--;
    CRASH_POINT_IF("projector.letter_stored", err == NULL);
    p->dead_letter_failed = p->dead_letter_failed || err != NULL;
    projector_move_on(p);
}

// The position passes such an event only after its dead letter is stored: a flush waits for that.
static void write_dead_letter(Projector *p, const BusMessage *message, const Error *reason)
{
    BusOut out;
    LOG(LOG_WARN, "event moved to the dead letters", log_text("projection", p->options.name),
        log_text("stream", message->stream), log_int("sequence", (int64_t)message->sequence),
        log_error(reason));
    DeadLetterSpec letter = {.stage = p->options.stage, .reason = reason->text};
    if (!dead_letter_pack(message, &letter, p->arena, &out)) {
        p->dead_letter_failed = true; // cannot happen by size
        return;
    }
    p->dead_letters_open++;
    bus_publish(p->bus, &out, on_letter_acked, p);
}

static bool is_full(const Projector *p)
{
    return p->folded >= p->options.flush_max ||
           (p->options.flush_bytes > 0 && p->folded_bytes >= p->options.flush_bytes);
}

// What is due waits for more of its kind, what is held for its time, and positions alone for
// either.
static void plan_flush(Projector *p)
{
    int ms = bus_rests(p->bus) ? GATHERED_MS : p->options.flush_ms;
    int wait_ms = p->handlers.wait_ms != NULL ? p->handlers.wait_ms(p->ctx) : 0;
    if (wait_ms != 0) {
        ms = wait_ms < 0 ? POSITION_MS : wait_ms > ms ? wait_ms : ms;
    }
    if (!uv_is_active((uv_handle_t *)&p->timer) || uv_timer_get_due_in(&p->timer) > (uint64_t)ms) {
        projector_wait_ms(p, ms);
    }
}

// Is there something to write, at once or later? Who stops writes nothing later.
static bool is_unwritten(const Projector *p)
{
    int wait_ms = p->handlers.wait_ms != NULL ? p->handlers.wait_ms(p->ctx) : -1;
    return p->folded > 0 || positions_pending(&p->positions) || wait_ms == 0 ||
           (wait_ms > 0 && !p->stopping);
}

// All of them while nothing may be folded, else those that are ahead of the others.
static void pause_readers(Projector *p, bool all)
{
    for (size_t i = 0; i < p->positions.count; i++) {
        Source *source = &p->sources[i];
        bool paused = all || (p->handlers.ahead != NULL &&
                              p->handlers.ahead(p->ctx, source->position->stream));
        if (source->reader != NULL && paused != source->paused) {
            source->paused = paused;
            p->options.readers->pause(source->reader, paused);
        }
    }
}

// What is read while a flush is under way is the next one's.
static bool folds_on(const Projector *p)
{
    return p->handlers.begin != NULL && p->in_air && !p->stopping;
}

// How far the positions may go: behind what was read, but not behind what is held.
static void note_places(Projector *p)
{
    for (size_t i = 0; i < p->positions.count; i++) {
        Position *at = &p->positions.at[i];
        ProjectorPlace before = {at->read, at->read_at_us};
        if (p->handlers.held != NULL && p->handlers.held(p->ctx, at->stream, &before) &&
            before.sequence == 0) {
            before = (ProjectorPlace){at->stored, at->stored_at_us};
        }
        at->folded = before.sequence;
        at->folded_at_us = before.stored_at_us;
    }
}

static void fold_messages(Source *source, const BusMessage *messages, size_t count)
{
    Projector *p = source->projector;
    if (p->state != PROJECTOR_FOLDING && p->state != PROJECTOR_FLUSHING) {
        return; // being dropped
    }
    assert((p->state == PROJECTOR_FOLDING || folds_on(p)) && "else readers are paused");
    bool first = p->folded == 0;
    for (size_t i = 0; i < count; i++) {
        Error err = {0};
        if (!p->handlers.fold(p->ctx, &messages[i], p->arena, &err)) {
            write_dead_letter(p, &messages[i], &err);
        }
        source->position->read = messages[i].sequence;
        source->position->read_at_us = messages[i].stored_at_us;
        p->folded_bytes += messages[i].payload.len;
    }
    p->folded += count;
    if (p->state == PROJECTOR_FLUSHING) {
        pause_readers(p, is_full(p));
        return;
    }
    if (is_full(p)) {
        start_flush(p);
        return;
    }
    if (first || p->handlers.wait_ms != NULL) {
        plan_flush(p);
    }
    if (p->handlers.ahead != NULL) {
        pause_readers(p, false);
    }
}

static void on_reader_messages(void *ctx, const BusMessage *messages, size_t count)
{
    fold_messages(ctx, messages, count);
}

// The server may report another creation time for a stream (reader.c): then its position is written
// though nothing is folded.
static void note_created(Projector *p)
{
    for (size_t i = 0; i < p->positions.count; i++) {
        const Source *source = &p->sources[i];
        int64_t created_us =
            source->reader != NULL ? p->options.readers->stream_created_us(source->reader) : 0;
        source->position->created_us = created_us != 0 ? created_us : source->position->created_us;
    }
}

static void finish_catching_up(Source *source)
{
    Projector *p = source->projector;
    source->caught_up = true;
    LOG(LOG_DEBUG, "projection caught up", log_text("projection", p->options.name),
        log_text("stream", source->position->stream));
    if (p->state != PROJECTOR_FOLDING) {
        return;
    }
    pause_readers(p, false);
    if (p->folded == 0 || p->handlers.wait_ms != NULL) {
        plan_flush(p);
    }
}

static void on_reader_caught_up(void *ctx)
{
    finish_catching_up(ctx);
}

static void handle_reader_failed(Projector *p, const Error *err)
{
    if (err->kind == ERROR_CONFIG) {
        projector_fail(p, err);
    } else if (p->state != PROJECTOR_DROPPING) {
        LOG(LOG_WARN, "projection cannot read, trying again",
            log_text("projection", p->options.name), log_error(err));
        projector_drop(p);
        projector_wait_ms(p, PROJECTOR_RETRY_MAX_MS);
    }
}

static void on_reader_failed(void *ctx, const Error *err)
{
    handle_reader_failed(((Source *)ctx)->projector, err);
}

static void start_folding(Projector *p)
{
    static const ReaderHandlers handlers = {
        on_reader_messages, on_reader_caught_up, on_reader_failed};
    projector_change_state(p, PROJECTOR_FOLDING);
    p->retry_ms = RETRY_MIN_MS;
    for (size_t i = 0; i < p->positions.count; i++) {
        Source *source = &p->sources[i];
        char stream[SUBJECT_SIZE];
        (void)str_to_c(str_from(source->position->stream), stream, sizeof stream);
        char *filter = strchr(stream, ' ');
        if (filter != NULL) {
            *filter++ = '\0';
        }
        ReaderOptions options = {
            .stream = stream,
            .filter = filter,
            .start_sequence = source->position->stored + 1,
            .expect_created_us = source->position->created_us,
            .last_stored_at_us = source->position->stored_at_us,
            .start_time_us = source->position->known ? 0 : p->options.begin_at_us,
            .remedy = p->options.remedy,
            .batch_max = p->options.flush_max < READ_BATCH ? p->options.flush_max : READ_BATCH,
            .batch_bytes = p->options.flush_bytes};
        source->caught_up = false;
        source->paused = false;
        source->reader =
            p->options.readers->open(p->options.readers_ctx, p->bus, &options, &handlers, source);
        p->readers_open++;
    }
    pause_readers(p, false);
}

// ---- positions ----

static void finish_load(Projector *p, DbTxn *txn, const Error *err)
{
    p->in_database = false;
    if (p->state != PROJECTOR_LOADING) {
        projector_move_on(p);
    } else if (err == NULL) {
        positions_read(&p->positions, db_txn_result(txn, 0));
        start_folding(p);
    } else if (err->kind == ERROR_CONFIG) {
        projector_fail_or_retry(p, err);
    } else {
        projector_wait_ms(p, projector_next_retry(p));
    }
}

static void on_load_done(void *ctx, DbTxn *txn, const Error *err)
{
    finish_load(ctx, txn, err);
}

static void start_load(Projector *p)
{
    projector_change_state(p, PROJECTOR_LOADING);
    DbTxn *txn = db_txn_new(p->options.pool);
    positions_add_load(&p->positions, txn);
    p->in_database = true;
    db_txn_submit(txn, on_load_done, p);
}

// ---- flushing ----

static void note_committed(Projector *p, DbTxn *txn)
{
    CRASH_POINT("projector.committed");
    positions_commit(&p->positions);
    if (p->air_folded > 0 || p->handlers.wait_ms != NULL) {
        p->handlers.committed(p->ctx, txn);
    }
    p->in_air = false;
    p->air_folded = 0;
    p->retry_ms = RETRY_MIN_MS;
    arena_reset(p->air_arena);
}

static void finish_check(Projector *p, DbTxn *txn, const Error *err)
{
    p->in_database = false;
    Error refusal = {.kind = ERROR_PERMANENT};
    memcpy(refusal.text, p->failure, sizeof refusal.text);
    p->failure[0] = '\0';
    if (p->state != PROJECTOR_FLUSHING) {
        projector_move_on(p);
    } else if (err == NULL && !positions_moved(&p->positions, db_txn_result(txn, 0))) {
        projector_fail_or_retry(p, &refusal); // no other process: the rows themselves are refused
    } else {
        projector_drop(p);
    }
}

static void on_check_done(void *ctx, DbTxn *txn, const Error *err)
{
    finish_check(ctx, txn, err);
}

// PERMANENT: the twin's fence, or data that Postgres refuses. Which one, the positions tell: see
// finish_check.
static void check_positions(Projector *p, const Error *err)
{
    snprintf(
        p->failure, sizeof p->failure, "%s", err->text); // stands if the positions did not move
    LOG(LOG_WARN, "flush refused by postgres, reading the positions again",
        log_text("projection", p->options.name), log_error(err));
    DbTxn *txn = db_txn_new(p->options.pool);
    positions_add_load(&p->positions, txn);
    p->in_database = true;
    db_txn_submit(txn, on_check_done, p);
}

static void go_on_folding(Projector *p)
{
    projector_change_state(p, PROJECTOR_FOLDING);
    if (is_full(p)) {
        start_flush(p);
        return;
    }
    bool due = p->handlers.wait_ms != NULL ? p->handlers.wait_ms(p->ctx) >= 0 : p->folded > 0;
    if (due) {
        plan_flush(p);
    }
    pause_readers(p, false);
    projector_move_on(p);
}

// All that was read is held: its messages are of no use any more, and no transaction is needed.
static bool has_nothing_to_write(Projector *p)
{
    note_created(p);
    note_places(p);
    return p->handlers.wait_ms != NULL && p->handlers.wait_ms(p->ctx) != 0 &&
           !positions_pending(&p->positions);
}

static void skip_flush(Projector *p)
{
    p->folded = 0;
    p->folded_bytes = 0;
    arena_reset(p->arena);
    go_on_folding(p);
}

static void finish_flush(Projector *p, DbTxn *txn, const Error *err)
{
    p->in_database = false;
    if (p->state != PROJECTOR_FLUSHING) {
        projector_move_on(p); // dropped meanwhile: the positions tell whether it was committed
    } else if (err == NULL && positions_all_moved(&p->positions, txn)) {
        note_committed(p, txn);
        go_on_folding(p);
    } else if (err == NULL) {
        projector_drop(p); // a position's row is gone: an operator resets the projection
    } else if (err->kind == ERROR_PERMANENT || err->kind == ERROR_CONFLICT) {
        check_positions(p, err);
    } else if (err->kind == ERROR_CONFIG) {
        projector_fail_or_retry(p, err);
    } else if (p->stopping) {
        projector_drop(p); // folded again by the next one
    } else {
        projector_wait_ms(p, projector_next_retry(p)); // the same flush again
    }
}

static void on_flush_done(void *ctx, DbTxn *txn, const Error *err)
{
    finish_flush(ctx, txn, err);
}

static DbTxn *new_txn(Projector *p)
{
    DbTxn *txn = db_txn_new(p->options.pool);
    db_txn_lazy_commit(txn); // a lost tail is folded again from the stored sequence
    return txn;
}

static void store_positions(Projector *p, DbTxn *txn)
{
    positions_add_moves(&p->positions, txn);
    db_txn_submit(txn, on_flush_done, p);
}

// Killed when one part is committed, or both: the positions are those before, and both are written
// again. (projector_nats_pg_test: a_part_beside_is_written_again_with_the_other)
static void finish_part(Projector *p, const Error *err)
{
    if (err != NULL && p->part_failed.kind == ERROR_NONE) {
        p->part_failed = *err;
    }
    if (--p->parts_open > 0) {
        return;
    }
    if (p->part_failed.kind != ERROR_NONE || p->state != PROJECTOR_FLUSHING) {
        finish_flush(p, NULL, &p->part_failed);
    } else {
        store_positions(p, new_txn(p));
    }
}

static void on_part_done(void *ctx, DbTxn *txn, const Error *err)
{
    (void)txn;
    finish_part(ctx, err);
}

// NULL: the flush has no part.
static DbTxn *part_beside(Projector *p)
{
    if (p->handlers.write_beside == NULL || p->air_folded == 0) {
        return NULL;
    }
    DbTxn *txn = new_txn(p);
    if (p->handlers.write_beside(p->ctx, txn)) {
        return txn;
    }
    db_txn_abandon(txn);
    return NULL;
}

static void submit_flush(Projector *p)
{
    DbTxn *beside = part_beside(p);
    DbTxn *txn = new_txn(p);
    if (p->air_folded > 0 || p->handlers.wait_ms != NULL) {
        p->handlers.write(p->ctx, txn);
    }
    if (p->handlers.begin == NULL) {
        note_places(p); // once it is known what is written
    }
    p->in_database = true;
    if (beside == NULL) {
        store_positions(p, txn);
        return;
    }
    p->parts_open = 2;
    p->part_failed = (Error){0};
    db_txn_submit(beside, on_part_done, p);
    db_txn_submit(txn, on_part_done, p);
}

static void begin_flush(Projector *p)
{
    Arena *arena = p->air_arena;
    p->air_arena = p->arena;
    p->air_folded = p->folded;
    p->arena = arena;
    p->folded = 0;
    p->folded_bytes = 0;
    p->in_air = true;
    if (p->handlers.begin != NULL) {
        p->handlers.begin(p->ctx);
        note_places(p); // those of this flush, also when it is tried again
    }
    submit_flush(p);
    if (folds_on(p)) {
        pause_readers(p, false);
    }
}

static void start_flush(Projector *p)
{
    uv_timer_stop(&p->timer);
    projector_change_state(p, PROJECTOR_FLUSHING);
    pause_readers(p, true);
    if (p->dead_letters_open == 0) {
        projector_move_on(p);
    }
}

// ---- what comes next ----

static void on_handle_closed(uv_handle_t *handle)
{
    Projector *p = handle->data;
    p->on_stopped(p->stopped_ctx);
}

static void on_lock_closed(void *ctx)
{
    Projector *p = ctx;
    p->lock = NULL;
    uv_close((uv_handle_t *)&p->timer, on_handle_closed);
}

static void handle_dropped(Projector *p)
{
    if (p->readers_open > 0 || p->in_database || p->dead_letters_open > 0 ||
        uv_is_active((uv_handle_t *)&p->timer)) {
        return;
    }
    p->dead_letter_failed = false;
    if (p->stopping) {
        projector_change_state(p, PROJECTOR_STOPPED);
        uv_timer_stop(&p->timer);
        db_lock_close(p->lock, on_lock_closed, p);
    } else if (p->failure[0] != '\0') {
        projector_change_state(p, PROJECTOR_FAILED);
    } else if (!db_lock_held(p->lock)) {
        projector_change_state(p, PROJECTOR_STANDBY);
    } else {
        start_load(p);
    }
}

static void flush_or_drop(Projector *p)
{
    if (p->in_database || p->dead_letters_open > 0) {
        return;
    }
    if (p->dead_letter_failed) {
        projector_drop(p);
    } else if (p->in_air) {
        submit_flush(p); // again
    } else if (has_nothing_to_write(p)) {
        skip_flush(p);
    } else {
        begin_flush(p);
    }
}

void projector_move_on(Projector *p)
{
    switch (p->state) {
    case PROJECTOR_DROPPING:
        handle_dropped(p);
        break;
    case PROJECTOR_LOADING:
        if (!p->in_database) {
            start_load(p);
        }
        break;
    case PROJECTOR_FOLDING:
        note_created(p);
        note_places(p);
        if (is_unwritten(p) && (p->stopping || !uv_is_active((uv_handle_t *)&p->timer))) {
            start_flush(p);
        } else if (p->stopping) {
            projector_drop(p);
        }
        break;
    case PROJECTOR_FLUSHING:
        if (!uv_is_active((uv_handle_t *)&p->timer)) {
            flush_or_drop(p);
        }
        break;
    case PROJECTOR_STANDBY:
    case PROJECTOR_FAILED:
        if (p->stopping) {
            projector_drop(p);
        }
        break;
    case PROJECTOR_STOPPED:
        break;
    }
}

static void handle_lock(Projector *p, bool held)
{
    if (held && p->state == PROJECTOR_STANDBY && !p->stopping) {
        start_load(p);
    } else if (
        !held && p->state != PROJECTOR_STANDBY && p->state != PROJECTOR_FAILED &&
        p->state != PROJECTOR_STOPPED) {
        projector_drop(p);
    }
}

static void on_lock_change(void *ctx, bool held)
{
    handle_lock(ctx, held);
}

// ---- start and stop ----

Projector *projector_new(
    Bus *bus, const ProjectorOptions *options, const ProjectorHandlers *handlers, void *ctx)
{
    Projector *p = xcalloc(1, sizeof *p);
    p->bus = bus;
    p->options = *options;
    p->options.stage = options->stage != NULL ? options->stage : options->name;
    p->options.readers = options->readers != NULL ? options->readers : &stream_readers;
    p->options.flush_max = options->flush_max > 0 ? options->flush_max : FLUSH_DEFAULT;
    p->options.flush_ms = options->flush_ms > 0 ? options->flush_ms : FLUSH_DEFAULT_MS;
    p->handlers = *handlers;
    p->ctx = ctx;
    p->arena = arena_new(64 * 1024);
    p->air_arena = arena_new(64 * 1024);
    p->retry_ms = RETRY_MIN_MS;
    positions_init(&p->positions, options->schema, options->name, options->streams);
    for (size_t i = 0; i < p->positions.count; i++) {
        p->sources[i] = (Source){.projector = p, .position = &p->positions.at[i]};
    }
    uv_timer_init(bus_loop(bus), &p->timer);
    p->timer.data = p;
    p->lock = db_lock_new(
        bus_loop(bus), options->database_url,
        options->lock_name != NULL ? options->lock_name : options->name, on_lock_change, p);
    return p;
}

void projector_stop(Projector *projector, void (*on_stopped)(void *ctx), void *ctx)
{
    projector->stopping = true;
    projector->on_stopped = on_stopped;
    projector->stopped_ctx = ctx;
    if (projector->state == PROJECTOR_LOADING) {
        projector_drop(projector);
    } else if (projector->state == PROJECTOR_FLUSHING) {
        pause_readers(projector, true);
    } else {
        projector_wait_ms(projector, 0);
    }
}

void projector_free(Projector *projector)
{
    assert(projector->state == PROJECTOR_STOPPED && projector->lock == NULL);
    arena_free(projector->arena);
    arena_free(projector->air_arena);
    free(projector);
}
