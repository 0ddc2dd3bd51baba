// SPDX-License-Identifier: Apache-2.0
// Killed between the commit and a mark, the row is published again under the same id: JetStream
// drops it within its window, the saga's inbox or ingest's keys after that
// (tests/integration/faults/test_saga_crash.py).
#include "services/order-saga/outbox.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/crash.h"
#include "common/base/log.h"

enum {
    PENDING_MAX = 8192, // messages that await their ack; rows beyond it are left to the sweep
    CLAIM_MAX = 500,
    LEASE_MS = 15000,   // a claimed row is swept again after this; no publish is awaited for longer
    TICK_MS = 20,       // while there is something to mark, or to stop for
    REST_MS = 500,      // else; a mark or the sweep's time ends it
    SWEEP_REST = 5,     // so many times the sweep's interval, while there is nothing to sweep
    MARKS_MAX = 100000, // published rows not marked yet; rows beyond it are published again
    MARKS_BATCH = 2000,
    STOP_MS = 5000,
};

typedef struct Sending {
    Outbox *outbox;
    int64_t sequence_number;
    int64_t committed_at_us;
    char tenant[33];
} Sending;

typedef struct Mark {
    int64_t sequence_number;
    char tenant[33];
} Mark;

// The rows of a claim, until their keys are read.
typedef struct Sweep {
    Outbox *outbox;
    Arena *arena;
    OutRow *rows;
    Str *bodies;
    int64_t *committed_at_us;
    KeyWant *wants;
    size_t count;
} Sweep;

struct Outbox {
    OutboxOptions options;
    uv_timer_t timer;
    size_t in_flight;
    Mark *marks;
    size_t mark_count, mark_cap;
    size_t marking; // the first so many are in the statement in flight
    int64_t sweep_at_us;
    bool sweeping;
    int64_t left_us; // of clock_mono_us(): when a row was last left to the sweep; 0: never
    bool awake;      // the timer's next time is a TICK_MS away
    int withholding;
    bool closing;
    int64_t stop_by_us;
    void (*on_stopped)(void *ctx);
    void *stopped_ctx;
};

static void on_timer_tick(uv_timer_t *timer);

// Nothing is looked for while there is nothing: a tick of 20 ms would be most of what an idle
// order-saga costs.
static void wake(Outbox *o, uint64_t after_ms)
{
    if (!o->closing && (!o->awake || after_ms != TICK_MS)) {
        o->awake = after_ms == TICK_MS;
        (void)uv_timer_start(&o->timer, on_timer_tick, after_ms, 0);
    }
}

// ---- marking ----

static void add_mark(Outbox *o, const Sending *sending)
{
    if (o->mark_count == MARKS_MAX) {
        return;
    }
    if (o->mark_count == o->mark_cap) {
        o->mark_cap = o->mark_cap == 0 ? 256 : o->mark_cap * 2;
        o->marks = xrealloc(o->marks, o->mark_cap * sizeof *o->marks);
    }
    wake(o, TICK_MS);
    Mark *mark = &o->marks[o->mark_count++];
    mark->sequence_number = sending->sequence_number;
    memcpy(mark->tenant, sending->tenant, sizeof mark->tenant);
}

static void on_db_marked(void *ctx, DbTxn *txn, const Error *err)
{
    (void)txn;
    Outbox *o = ctx;
    if (err == NULL) {
        CRASH_POINT("saga.marked");
        memmove(o->marks, o->marks + o->marking, (o->mark_count - o->marking) * sizeof *o->marks);
        o->mark_count -= o->marking;
    } // else they stay and are marked at the next tick
    o->marking = 0;
}

static void mark(Outbox *o)
{
    if (o->marking > 0 || o->mark_count == 0 || !db_pool_ready(o->options.pool)) {
        return;
    }
    o->marking = o->mark_count < MARKS_BATCH ? o->mark_count : MARKS_BATCH;
    DbTxn *txn = db_txn_new(o->options.pool);
    db_txn_lazy_commit(txn); // a mark lost in a power cut is a row published again
    int64_t *numbers = arena_array(db_txn_arena(txn), o->marking, sizeof *numbers);
    for (size_t i = 0; i < o->marking; i++) {
        numbers[i] = o->marks[i].sequence_number;
        if (i == 0 || strcmp(o->marks[i].tenant, o->marks[i - 1].tenant) != 0) {
            db_txn_tenant(txn, str_from(o->marks[i].tenant));
        }
    }
    saga_sql_mark_sent(txn, numbers, o->marking);
    db_txn_submit(txn, on_db_marked, o);
}

// ---- publishing ----

// What became of one row: the saga's outbox is read here and not in its table, which is emptied.
static void log_row(const Sending *sending, const Error *err, uint64_t sequence)
{
    if (err == NULL && log_takes_notification(LOG_INFO)) {
        LOG(LOG_INFO, "an outbox row was published", log_text("tenant", sending->tenant),
            log_int("sequence_number", sending->sequence_number),
            log_int("sequence", (int64_t)sequence));
    } else if (err != NULL && log_takes_notification(LOG_WARN)) {
        LOG(LOG_WARN, "an outbox row was not published; the sweep tries again",
            log_text("tenant", sending->tenant),
            log_int("sequence_number", sending->sequence_number), log_error(err));
    }
}

static void on_bus_acked(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    Sending *sending = ctx;
    Outbox *o = sending->outbox;
    CRASH_POINT_IF("saga.published", err == NULL);
    o->in_flight--;
    log_row(sending, err, sequence);
    if (err == NULL) {
        add_mark(o, sending);
        metric_add(o->options.metrics->published, 1);
        metric_add(o->options.metrics->repeats_dropped, duplicate ? 1 : 0);
        metric_observe(
            o->options.metrics->outbox_seconds,
            (double)(clock_now_us() - sending->committed_at_us) / 1e6);
    } else {
        o->left_us = clock_mono_us();
        metric_add(o->options.metrics->publish_failed, 1);
    }
    free(sending);
}

static bool publish(Outbox *o, const OutRow *row, int64_t committed_at_us, Arena *arena)
{
    if (!bus_connected(o->options.bus) || bus_pending(o->options.bus) >= PENDING_MAX) {
        return false;
    }
    BusOut out = message_out(&row->message, row->traceparent, arena);
    Error err = {0};
    if (o->options.event_keys != NULL && message_is_command(str_from(row->message.type)) &&
        !event_seal_out(o->options.event_keys, clock_mono_us(), &out, arena, &err)) {
        LOG(LOG_WARN, "an outbox row could not be sealed; the sweep tries again",
            log_int("sequence_number", row->sequence_number), log_error(&err));
        return false;
    }
    Sending *sending = xcalloc(1, sizeof *sending);
    sending->outbox = o;
    sending->sequence_number = row->sequence_number;
    sending->committed_at_us = committed_at_us;
    (void)str_to_c(row->message.tenant, sending->tenant, sizeof sending->tenant);
    o->in_flight++;
    bus_publish(o->options.bus, &out, on_bus_acked, sending);
    return true;
}

void outbox_send(Outbox *o, const OutRow *row, Arena *arena)
{
    if (!publish(o, row, clock_now_us(), arena)) {
        o->left_us = clock_mono_us();
    }
}

// ---- the sweep ----

static void on_db_withheld(void *ctx, DbTxn *txn, const Error *err)
{
    (void)txn;
    Outbox *o = ctx;
    o->withholding--;
    metric_add(o->options.metrics->withheld, err == NULL ? 1 : 0);
}

static void withhold_row(Outbox *o, const OutRow *row, const char *why)
{
    DbTxn *txn = db_txn_new(o->options.pool);
    saga_sql_withhold(txn, row->sequence_number, row->message.tenant, why);
    o->withholding++;
    db_txn_submit(txn, on_db_withheld, o);
}

static void publish_swept(Sweep *sweep, size_t i)
{
    CRASH_POINT("saga.sweep_claimed");
    Outbox *o = sweep->outbox;
    OutRow *row = &sweep->rows[i];
    Error err = {0};
    DataKey *key = sweep->wants[i].key;
    if (message_is_command(str_from(row->message.type))) {
        if (key == NULL) {
            withhold_row(o, row, "the recipient is erased");
            return;
        }
        if (!command_unseal(
                key, row->message.tenant, str_from(row->message.correlation_id), sweep->bodies[i],
                sweep->arena, &row->message.payload, &err)) {
            LOG(LOG_ERROR, "an outbox row is unreadable and is never sent",
                log_int("sequence_number", row->sequence_number), log_error(&err));
            withhold_row(o, row, "the body is unreadable");
            return;
        }
    }
    if (publish(o, row, sweep->committed_at_us[i], sweep->arena)) {
        metric_add(o->options.metrics->swept, 1);
    }
}

static void end_sweep(Sweep *sweep, int64_t wait_ms)
{
    Outbox *o = sweep->outbox;
    o->sweeping = false;
    o->sweep_at_us = clock_mono_us() + wait_ms * 1000;
    arena_free(sweep->arena);
}

static void on_keyring_done(void *ctx, const Error *err)
{
    Sweep *sweep = ctx;
    for (size_t i = 0; i < sweep->count && err == NULL; i++) {
        publish_swept(sweep, i);
    }
    bool more = err == NULL && sweep->count == CLAIM_MAX;
    end_sweep(sweep, more ? 0 : sweep->outbox->options.every_ms);
}

static void read_row(Sweep *sweep, const PGresult *res, int at)
{
    OutRow *row = &sweep->rows[at];
    OutMessage *m = &row->message;
    row->sequence_number = db_get_int(res, at, CLAIM_SEQUENCE);
    m->tenant = arena_str(sweep->arena, db_get_text(res, at, CLAIM_TENANT));
    (void)str_to_c(db_get_text(res, at, CLAIM_MESSAGE_ID), m->event_id, sizeof m->event_id);
    m->type = arena_cstr(sweep->arena, db_get_text(res, at, CLAIM_TYPE));
    (void)str_to_c(
        db_get_text(res, at, CLAIM_CORRELATION), m->correlation_id, sizeof m->correlation_id);
    (void)str_to_c(db_get_text(res, at, CLAIM_SUBJECT), m->subject, sizeof m->subject);
    m->payload = arena_str(sweep->arena, db_get_text(res, at, CLAIM_BODY));
    m->happened_at_us = db_get_time(res, at, CLAIM_HAPPENED);
    m->seen_at_us = db_get_time(res, at, CLAIM_SEEN);
    row->traceparent = arena_str(sweep->arena, db_get_text(res, at, CLAIM_TRACEPARENT));
    sweep->bodies[at] = m->payload;
    sweep->committed_at_us[at] = db_get_time(res, at, CLAIM_ENQUEUED);
    Str sealed = message_is_command(str_from(m->type)) ? m->payload : STR_EMPTY;
    sweep->wants[at] = message_key_want(m->tenant, sealed, sweep->arena);
}

// What this process has left to the sweep is old enough by then; what a dead one left can wait.
static bool may_rest(const Outbox *o)
{
    int64_t soon_us = (o->options.older_than_ms + 2 * o->options.every_ms) * INT64_C(1000);
    return o->left_us == 0 || clock_mono_us() - o->left_us > soon_us;
}

static void on_db_claimed(void *ctx, DbTxn *txn, const Error *err)
{
    Sweep *sweep = ctx;
    Outbox *o = sweep->outbox;
    if (err != NULL && err->kind != ERROR_TRANSIENT && err->kind != ERROR_CANCELLED) {
        LOG(LOG_ERROR, "the outbox could not be swept, retrying", log_error(err));
    }
    sweep->count = err == NULL ? (size_t)db_rows(db_txn_result(txn, 0)) : 0;
    if (sweep->count == 0) {
        end_sweep(
            sweep,
            err == NULL && may_rest(o) ? SWEEP_REST * o->options.every_ms : o->options.every_ms);
        return;
    }
    sweep->rows = arena_array(sweep->arena, sweep->count, sizeof *sweep->rows);
    sweep->bodies = arena_array(sweep->arena, sweep->count, sizeof *sweep->bodies);
    sweep->committed_at_us = arena_array(sweep->arena, sweep->count, sizeof(int64_t));
    sweep->wants = arena_array(sweep->arena, sweep->count, sizeof *sweep->wants);
    for (size_t i = 0; i < sweep->count; i++) {
        read_row(sweep, db_txn_result(txn, 0), (int)i);
    }
    keyring_resolve(o->options.keyring, sweep->wants, sweep->count, on_keyring_done, sweep);
}

static void look(Outbox *o)
{
    if (o->sweeping || clock_mono_us() < o->sweep_at_us || !db_pool_ready(o->options.pool) ||
        !bus_connected(o->options.bus) || bus_pending(o->options.bus) >= PENDING_MAX) {
        return;
    }
    o->sweeping = true;
    Arena *arena = arena_new(0);
    Sweep *sweep = arena_zalloc(arena, sizeof *sweep);
    sweep->outbox = o;
    sweep->arena = arena;
    DbTxn *txn = db_txn_new(o->options.pool);
    db_txn_lazy_commit(txn); // a claim lost in a crash of Postgres is only made again
    saga_sql_claim(txn, o->options.older_than_ms, LEASE_MS, CLAIM_MAX);
    db_txn_submit(txn, on_db_claimed, sweep);
}

// ---- starting and stopping ----

static void on_timer_closed(uv_handle_t *handle)
{
    Outbox *o = handle->data;
    o->on_stopped(o->stopped_ctx);
}

static void finish_stop(Outbox *o)
{
    bool idle = o->in_flight == 0 && o->mark_count == 0;
    bool late = clock_mono_us() > o->stop_by_us && o->in_flight == 0;
    if ((idle || late) && o->marking == 0 && !o->sweeping && o->withholding == 0 && !o->closing) {
        o->closing = true;
        uv_close((uv_handle_t *)&o->timer, on_timer_closed);
    }
}

static uint64_t rest_ms(const Outbox *o)
{
    int64_t sweep_ms = (o->sweep_at_us - clock_mono_us()) / 1000;
    bool busy = o->mark_count > 0 || o->on_stopped != NULL || sweep_ms < TICK_MS;
    return busy ? TICK_MS : (uint64_t)(sweep_ms < REST_MS ? sweep_ms : REST_MS);
}

static void on_timer_tick(uv_timer_t *timer)
{
    Outbox *o = timer->data;
    o->awake = false;
    mark(o);
    if (o->on_stopped == NULL) {
        look(o);
    } else {
        finish_stop(o);
    }
    wake(o, rest_ms(o));
}

Outbox *outbox_new(const OutboxOptions *options)
{
    Outbox *o = xcalloc(1, sizeof *o);
    o->options = *options;
    (void)uv_timer_init(bus_loop(options->bus), &o->timer);
    o->timer.data = o;
    wake(o, TICK_MS);
    return o;
}

void outbox_stop(Outbox *o, void (*on_stopped)(void *ctx), void *ctx)
{
    o->on_stopped = on_stopped;
    o->stopped_ctx = ctx;
    o->stop_by_us = clock_mono_us() + STOP_MS * INT64_C(1000);
    wake(o, TICK_MS);
}

void outbox_free(Outbox *o)
{
    if (o != NULL) {
        free(o->marks);
        free(o);
    }
}
