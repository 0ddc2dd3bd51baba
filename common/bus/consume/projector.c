// SPDX-License-Identifier: Apache-2.0
// A projector's life: no lock (STANDBY) -> lock: read positions (LOADING) -> readers from there
// (FOLDING) -> one flush at a time (FLUSHING, readers paused: what arrives waits in them) ->
// FOLDING. Whatever goes wrong drops what is folded and begins again at LOADING; only an
// installation's fault (FAILED) needs a person.
//
// Killed before the commit: nothing happened, the same events are folded again. Killed after it:
// rows and sequences are both there. A twin that lost the lock unknowingly: its UPDATE meets
// another sequence, sets NULL into a NOT NULL column, and Postgres refuses the whole transaction.
// (projector_nats_pg_test: a_late_twin_cannot_write, a_drop_folds_again,
// a_lost_tail_is_folded_again)
#include "common/bus/consume/projector.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/crash.h"
#include "common/base/log.h"
#include "common/bus/consume/bury.h"
#include "common/bus/consume/positions.h"
#include "common/bus/consume/reader.h"
#include "common/bus/jetstream/bus_internal.h"
#include "common/db/lock.h"

enum {
    FLUSH_DEFAULT = 2000,
    FLUSH_DEFAULT_MS = 20,
    RETRY_MIN_MS = 100,
    RETRY_MAX_MS = 5000,
    READ_BATCH = 512,
};

typedef enum ProjectorState {
    PROJECTOR_STANDBY,
    PROJECTOR_LOADING,
    PROJECTOR_FOLDING,
    PROJECTOR_FLUSHING,
    PROJECTOR_DROPPING, // readers are closing; then STANDBY or LOADING
    PROJECTOR_FAILED,
    PROJECTOR_STOPPED,
} ProjectorState;

typedef struct Source {
    Projector *projector;
    Position *position;
    Reader *reader;
    bool caught_up;
} Source;

struct Projector {
    Bus *bus;
    ProjectorOptions options;
    ProjectorHandlers handlers;
    void *ctx;
    DbLock *lock;
    Positions positions;
    Source sources[POSITIONS_MAX]; // one for each position
    ProjectorState state;
    Arena *arena;
    size_t folded;
    size_t burying;   // dead letters without their ack yet
    bool bury_failed; // one was not stored: the position must not pass it
    bool in_database; // a load or a flush has not been answered
    bool stopping;
    size_t readers_open;
    uint64_t tails_lost; // of readers that are gone
    int retry_ms;
    uv_timer_t timer;  // closes a flush, or tries again
    char failure[240]; // an Error's text
    void (*on_stopped)(void *ctx);
    void *stopped_ctx;
};

static void start_load(Projector *p);
static void start_flush(Projector *p);
static void move_on(Projector *p);

// ---- state ----

static const char *state_name(ProjectorState state)
{
    switch (state) {
    case PROJECTOR_STANDBY:
        return "standby";
    case PROJECTOR_LOADING:
        return "loading";
    case PROJECTOR_FOLDING:
        return "folding";
    case PROJECTOR_FLUSHING:
        return "flushing";
    case PROJECTOR_DROPPING:
        return "dropping";
    case PROJECTOR_FAILED:
        return "failed";
    case PROJECTOR_STOPPED:
        return "stopped";
    }
    return "";
}

static void change_state(Projector *p, ProjectorState next)
{
    bool routine = (p->state == PROJECTOR_FOLDING && next == PROJECTOR_FLUSHING) ||
                   (p->state == PROJECTOR_FLUSHING && next == PROJECTOR_FOLDING);
    if (!routine && p->state != next) {
        LOG(LOG_INFO, "projector moves", log_text("projection", p->options.name),
            log_text("from", state_name(p->state)), log_text("to", state_name(next)));
    }
    p->state = next;
}

static void on_timer_due(uv_timer_t *timer)
{
    move_on(timer->data);
}

static void wait_ms(Projector *p, int ms)
{
    uv_timer_start(&p->timer, on_timer_due, (uint64_t)ms, 0);
}

static int next_retry(Projector *p)
{
    int ms = p->retry_ms;
    p->retry_ms = 2 * ms > RETRY_MAX_MS ? RETRY_MAX_MS : 2 * ms;
    return ms;
}

// ---- dropping ----

static void forget_folded(Projector *p)
{
    if (p->folded > 0) {
        p->handlers.committed(p->ctx, NULL);
    }
    p->folded = 0;
    arena_reset(p->arena);
}

static void handle_reader_freed(Projector *p)
{
    p->readers_open--;
    move_on(p);
}

static void on_reader_freed(void *ctx)
{
    Source *source = ctx;
    source->reader = NULL;
    handle_reader_freed(source->projector);
}

static void drop(Projector *p)
{
    if (p->state == PROJECTOR_DROPPING) {
        return;
    }
    change_state(p, PROJECTOR_DROPPING);
    forget_folded(p);
    for (size_t i = 0; i < p->positions.count; i++) {
        if (p->sources[i].reader != NULL) {
            p->tails_lost += reader_tails_lost(p->sources[i].reader);
            reader_free(p->sources[i].reader, on_reader_freed, &p->sources[i]);
        }
    }
    wait_ms(p, 0);
}

static void fail(Projector *p, const Error *err)
{
    if (p->failure[0] != '\0') {
        return;
    }
    snprintf(p->failure, sizeof p->failure, "%s", err->text);
    LOG(LOG_ERROR, "projection stands still", log_text("projection", p->options.name),
        log_error(err));
    drop(p);
}

// What cannot be written would be refused for ever, if the owner does not know better.
static void fail_or_retry(Projector *p, const Error *err)
{
    if (!p->stopping && p->handlers.refused != NULL && p->handlers.refused(p->ctx, err)) {
        wait_ms(p, next_retry(p));
    } else {
        fail(p, err);
    }
}

// ---- folding ----

static void note_buried(Projector *p, const Error *err)
{
    p->burying--;
    CRASH_POINT_IF("projector.letter_stored", err == NULL);
    p->bury_failed = p->bury_failed || err != NULL;
    move_on(p);
}

static void on_letter_acked(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    (void)sequence;
    (void)duplicate;
    note_buried(ctx, err);
}

// The position passes a buried event only after its letter is stored: a flush waits for that.
static void bury(Projector *p, const BusMessage *message, const Error *reason)
{
    BusOut out;
    LOG(LOG_WARN, "event buried", log_text("projection", p->options.name),
        log_text("stream", message->stream), log_int("sequence", (int64_t)message->sequence),
        log_error(reason));
    if (!bury_pack(message, p->options.name, reason->text, STR_EMPTY, p->arena, &out)) {
        p->bury_failed = true; // cannot happen by size
        return;
    }
    p->burying++;
    bus_publish(p->bus, &out, on_letter_acked, p);
}

static void fold_messages(Source *source, const BusMessage *messages, size_t count)
{
    Projector *p = source->projector;
    if (p->state != PROJECTOR_FOLDING && p->state != PROJECTOR_FLUSHING) {
        return; // being dropped
    }
    assert(p->state == PROJECTOR_FOLDING && "readers are paused while a flush is in the air");
    if (p->folded == 0) {
        wait_ms(p, p->options.flush_ms);
    }
    for (size_t i = 0; i < count; i++) {
        Error err = {0};
        if (!p->handlers.fold(p->ctx, &messages[i], p->arena, &err)) {
            bury(p, &messages[i], &err);
        }
        source->position->folded = messages[i].sequence;
        source->position->folded_at_us = messages[i].stored_at_us;
    }
    p->folded += count;
    if (p->folded >= p->options.flush_max) {
        start_flush(p);
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
        int64_t created_us = source->reader != NULL ? reader_stream_created_us(source->reader) : 0;
        source->position->created_us = created_us != 0 ? created_us : source->position->created_us;
    }
}

static void finish_catching_up(Source *source)
{
    Projector *p = source->projector;
    source->caught_up = true;
    LOG(LOG_DEBUG, "projection caught up", log_text("projection", p->options.name),
        log_text("stream", source->position->stream));
    if (p->state == PROJECTOR_FOLDING && p->folded == 0) {
        wait_ms(p, p->options.flush_ms);
    }
}

static void on_reader_caught_up(void *ctx)
{
    finish_catching_up(ctx);
}

static void handle_reader_failed(Projector *p, const Error *err)
{
    if (err->kind == ERROR_CONFIG) {
        fail(p, err);
    } else if (p->state != PROJECTOR_DROPPING) {
        LOG(LOG_WARN, "projection cannot read, trying again",
            log_text("projection", p->options.name), log_error(err));
        drop(p);
        wait_ms(p, RETRY_MAX_MS);
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
    change_state(p, PROJECTOR_FOLDING);
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
            .batch_max = p->options.flush_max < READ_BATCH ? p->options.flush_max : READ_BATCH};
        source->caught_up = false;
        source->reader = reader_new(p->bus, &options, &handlers, source);
        p->readers_open++;
    }
}

static void pause_readers(Projector *p, bool paused)
{
    for (size_t i = 0; i < p->positions.count; i++) {
        if (p->sources[i].reader != NULL) {
            reader_pause(p->sources[i].reader, paused);
        }
    }
}

// ---- positions ----

static void finish_load(Projector *p, DbTxn *txn, const Error *err)
{
    p->in_database = false;
    if (p->state != PROJECTOR_LOADING) {
        move_on(p);
    } else if (err == NULL) {
        positions_read(&p->positions, db_txn_result(txn, 0));
        start_folding(p);
    } else if (err->kind == ERROR_CONFIG) {
        fail_or_retry(p, err);
    } else {
        wait_ms(p, next_retry(p));
    }
}

static void on_load_done(void *ctx, DbTxn *txn, const Error *err)
{
    finish_load(ctx, txn, err);
}

static void start_load(Projector *p)
{
    change_state(p, PROJECTOR_LOADING);
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
    if (p->folded > 0) {
        p->handlers.committed(p->ctx, txn);
    }
    p->folded = 0;
    p->retry_ms = RETRY_MIN_MS;
    arena_reset(p->arena);
}

// PERMANENT: the twin's fence, or data that Postgres refuses. Which one, the positions tell: see
// finish_check.
static void handle_refusal(Projector *p, const Error *err)
{
    snprintf(
        p->failure, sizeof p->failure, "%s", err->text); // stands if nobody moved the positions
    LOG(LOG_WARN, "flush refused, reading the positions again",
        log_text("projection", p->options.name), log_error(err));
}

static void finish_check(Projector *p, DbTxn *txn, const Error *err)
{
    p->in_database = false;
    Error refusal = {ERROR_PERMANENT, ""};
    memcpy(refusal.text, p->failure, sizeof refusal.text);
    p->failure[0] = '\0';
    if (p->state != PROJECTOR_FLUSHING) {
        move_on(p);
    } else if (err == NULL && !positions_moved(&p->positions, db_txn_result(txn, 0))) {
        fail_or_retry(p, &refusal); // nobody else: the rows themselves are refused
    } else {
        drop(p);
    }
}

static void on_check_done(void *ctx, DbTxn *txn, const Error *err)
{
    finish_check(ctx, txn, err);
}

static void check_positions(Projector *p, const Error *err)
{
    handle_refusal(p, err);
    DbTxn *txn = db_txn_new(p->options.pool);
    positions_add_load(&p->positions, txn);
    p->in_database = true;
    db_txn_submit(txn, on_check_done, p);
}

static void finish_flush(Projector *p, DbTxn *txn, const Error *err)
{
    p->in_database = false;
    if (p->state != PROJECTOR_FLUSHING) {
        move_on(p); // dropped meanwhile: the positions tell whether it was committed
    } else if (err == NULL && positions_all_moved(&p->positions, txn)) {
        note_committed(p, txn);
        change_state(p, PROJECTOR_FOLDING);
        pause_readers(p, false);
        move_on(p);
    } else if (err == NULL) {
        drop(p); // a position's row is gone: somebody resets the projection
    } else if (err->kind == ERROR_PERMANENT || err->kind == ERROR_CONFLICT) {
        check_positions(p, err);
    } else if (err->kind == ERROR_CONFIG) {
        fail_or_retry(p, err);
    } else if (p->stopping) {
        drop(p); // folded again by the next one
    } else {
        wait_ms(p, next_retry(p)); // the same flush again
    }
}

static void on_flush_done(void *ctx, DbTxn *txn, const Error *err)
{
    finish_flush(ctx, txn, err);
}

static void submit_flush(Projector *p)
{
    DbTxn *txn = db_txn_new(p->options.pool);
    db_txn_lazy_commit(txn); // a lost tail is folded again from the stored sequence
    if (p->folded > 0) {
        p->handlers.write(p->ctx, txn);
    }
    note_created(p);
    positions_add_moves(&p->positions, txn);
    p->in_database = true;
    db_txn_submit(txn, on_flush_done, p);
}

static void start_flush(Projector *p)
{
    uv_timer_stop(&p->timer);
    change_state(p, PROJECTOR_FLUSHING);
    pause_readers(p, true);
    if (p->burying == 0) {
        move_on(p);
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
    if (p->readers_open > 0 || p->in_database || p->burying > 0 ||
        uv_is_active((uv_handle_t *)&p->timer)) {
        return;
    }
    p->bury_failed = false;
    if (p->stopping) {
        change_state(p, PROJECTOR_STOPPED);
        uv_timer_stop(&p->timer);
        db_lock_close(p->lock, on_lock_closed, p);
    } else if (p->failure[0] != '\0') {
        change_state(p, PROJECTOR_FAILED);
    } else if (!db_lock_held(p->lock)) {
        change_state(p, PROJECTOR_STANDBY);
    } else {
        start_load(p);
    }
}

static void flush_or_drop(Projector *p)
{
    if (p->in_database || p->burying > 0) {
        return;
    }
    if (p->bury_failed) {
        drop(p);
    } else {
        submit_flush(p);
    }
}

static bool has_work(Projector *p)
{
    note_created(p);
    return p->folded > 0 || positions_pending(&p->positions);
}

// The one place that decides what follows; called whenever something ended or a timer is due.
static void move_on(Projector *p)
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
        if (has_work(p) && (p->stopping || !uv_is_active((uv_handle_t *)&p->timer))) {
            start_flush(p);
        } else if (p->stopping) {
            drop(p);
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
            drop(p);
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
        drop(p);
    }
}

static void on_lock_change(void *ctx, bool held)
{
    handle_lock(ctx, held);
}

// ---- life ----

Projector *projector_new(
    Bus *bus, const ProjectorOptions *options, const ProjectorHandlers *handlers, void *ctx)
{
    Projector *p = xcalloc(1, sizeof *p);
    p->bus = bus;
    p->options = *options;
    p->options.flush_max = options->flush_max > 0 ? options->flush_max : FLUSH_DEFAULT;
    p->options.flush_ms = options->flush_ms > 0 ? options->flush_ms : FLUSH_DEFAULT_MS;
    p->handlers = *handlers;
    p->ctx = ctx;
    p->arena = arena_new(64 * 1024);
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
        drop(projector);
    } else if (projector->state != PROJECTOR_FLUSHING) {
        wait_ms(projector, 0);
    }
}

void projector_free(Projector *projector)
{
    assert(projector->state == PROJECTOR_STOPPED && projector->lock == NULL);
    arena_free(projector->arena);
    free(projector);
}

bool projector_active(const Projector *projector)
{
    return projector->state == PROJECTOR_FOLDING || projector->state == PROJECTOR_FLUSHING;
}

const char *projector_failure(const Projector *projector)
{
    return projector->failure[0] != '\0' && projector->state != PROJECTOR_FLUSHING
               ? projector->failure
               : NULL;
}

uint64_t projector_lag(const Projector *projector)
{
    uint64_t lag = projector->folded;
    for (size_t i = 0; i < projector->positions.count; i++) {
        if (projector->sources[i].reader != NULL) {
            lag += reader_lag(projector->sources[i].reader);
        }
    }
    return lag;
}

bool projector_caught_up(const Projector *projector)
{
    for (size_t i = 0; i < projector->positions.count; i++) {
        if (!projector->sources[i].caught_up) {
            return false;
        }
    }
    return projector_active(projector);
}

uint64_t projector_position(const Projector *projector, const char *stream)
{
    for (size_t i = 0; i < projector->positions.count; i++) {
        if (strcmp(projector->positions.at[i].stream, stream) == 0) {
            return projector->positions.at[i].stored;
        }
    }
    return 0;
}

uint64_t projector_tails_lost(const Projector *projector)
{
    uint64_t count = projector->tails_lost;
    for (size_t i = 0; i < projector->positions.count; i++) {
        const Reader *reader = projector->sources[i].reader;
        count += reader != NULL && projector_active(projector) ? reader_tails_lost(reader) : 0;
    }
    return count;
}
