// SPDX-License-Identifier: Apache-2.0
// A round: how far the readers are -> claim rows -> each row -> end the claim -> wait.
#include "services/ingest/reseal/reseal.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/crash.h"
#include "common/base/log.h"
#include "common/domain/domain_event.h"
#include "services/ingest/reseal/reseal_internal.h"

enum {
    ROWS_MAX = 64,
    LEASE_MS = 60000, // a row takes two answers of at most 5 s and a publish of 10
    BUSY_MS = 20,     // between two rounds while there is more
    PAGE_TIMEOUT_MS = 5000,
    OLD_S = 600, // since when an original counts as late
};

static const int64_t WARN_EVERY_US = INT64_C(600) * 1000000;

static const DbStatement NOTE = {
    "ingest_note_clear_events", "SELECT ingest.note_clear_events($1::int8[], $2::timestamptz[])"};
static const DbStatement CLAIM = {
    "ingest_claim_clear_events",
    "SELECT sequence, stored_at, copied FROM ingest.claim_clear_events("
    "$1::int8, $2::int8 * interval '1 millisecond', $3::int4)"};
static const DbStatement WAITING = {
    "ingest_clear_events_waiting",
    "SELECT waiting, oldest_s::int8 FROM ingest.clear_events_waiting()"};
static const DbStatement END = {
    "ingest_end_clear_events",
    "SELECT ingest.end_clear_events($1::int8[], $2::int8[], $3::int8[])"};

static void begin_round(Reseal *r);

// ---- noting ----

typedef struct Note {
    Delivery **held;
    size_t count;
    Reseal *reseal;
} Note;

static void on_db_noted(void *ctx, DbTxn *txn, const Error *err)
{
    (void)txn;
    const Note *note = ctx;
    size_t count = note->count;
    Delivery **held = note->held;
    note->reseal->in_air--;
    if (err == NULL) {
        CRASH_POINT("reseal.noted");
    }
    for (size_t i = 0; i < count; i++) {
        delivery_held(held[i], err); // the last one may take note and list along
    }
}

static bool is_clear(const Reseal *r, const BusMessage *message)
{
    Str tenant, type;
    return domain_subject(message->subject, &tenant, &type) && !event_is_sealed(message->payload) &&
           !event_is_plain(type, message->payload) &&
           !catalog_tenant(r->options.catalog, tenant)->events_in_clear;
}

static Note *gather(Reseal *r, Delivery **deliveries, size_t count)
{
    Note *note = NULL;
    for (size_t i = 0; i < count; i++) {
        if (!is_clear(r, &deliveries[i]->message)) {
            continue;
        }
        Arena *arena = deliveries[i]->arena; // of the whole batch
        if (note == NULL) {
            note = arena_zalloc(arena, sizeof *note);
            note->held = arena_array(arena, count, sizeof(Delivery *));
            note->reseal = r;
        }
        note->held[note->count++] = deliveries[i];
    }
    return note;
}

void reseal_note(Reseal *r, Delivery **deliveries, size_t count)
{
    Note *note = r->options.keys != NULL ? gather(r, deliveries, count) : NULL;
    if (note == NULL) {
        return;
    }
    DbTxn *txn = db_txn_new(r->options.pool);
    DbParams *p = db_txn_add(txn, &NOTE, NULL);
    DbArray *sequences = db_array(p, DB_I64);
    DbArray *times = db_array(p, DB_TIME);
    for (size_t i = 0; i < note->count; i++) {
        db_push_int(sequences, (int64_t)note->held[i]->message.sequence);
        db_push_time(times, note->held[i]->message.stored_at_us);
        delivery_hold(note->held[i]);
    }
    r->in_air++;
    db_txn_submit(txn, on_db_noted, note);
}

// ---- the end of a round ----

static void on_timer_round(uv_timer_t *timer)
{
    begin_round(timer->data);
}

static void wait_ms(Reseal *r, int64_t ms)
{
    if (!r->stopping) {
        (void)uv_timer_start(&r->timer, on_timer_round, (uint64_t)ms, 0);
    }
}

static void end_round(Reseal *r, const Error *err)
{
    if (err != NULL && err->kind != ERROR_TRANSIENT && err->kind != ERROR_CANCELLED) {
        LOG(LOG_ERROR, "events in clear are not sealed, the next round tries again",
            log_error(err));
    }
    bool more = err == NULL && r->failed.kind == ERROR_NONE && r->count == ROWS_MAX;
    arena_free(r->arena);
    r->arena = NULL;
    r->in_air--;
    wait_ms(r, more ? BUSY_MS : r->options.every_ms);
}

static void on_db_ended(void *ctx, DbTxn *txn, const Error *err)
{
    (void)txn;
    if (err == NULL) {
        CRASH_POINT("reseal.marked");
    }
    end_round(ctx, err);
}

static void push_fate(const Reseal *r, DbParams *p, RowFate fate)
{
    DbArray *sequences = db_array(p, DB_I64);
    for (size_t i = 0; i < r->count; i++) {
        if (r->rows[i].fate == fate) {
            db_push_int(sequences, (int64_t)r->rows[i].sequence);
        }
    }
}

static void end_claim(Reseal *r)
{
    if (r->failed.kind != ERROR_NONE) {
        LOG(LOG_WARN, "an event in clear is not sealed yet, the next round tries again",
            log_error(&r->failed));
    }
    DbTxn *txn = db_txn_new(r->options.pool);
    DbParams *p = db_txn_add(txn, &END, NULL);
    push_fate(r, p, ROW_COPIED);
    push_fate(r, p, ROW_GONE);
    push_fate(r, p, ROW_LEFT);
    db_txn_submit(txn, on_db_ended, r);
}

void reseal_row_done(ResealRow *row, RowFate fate, const Error *err)
{
    Reseal *r = row->reseal;
    row->fate = fate;
    if (err != NULL && r->failed.kind == ERROR_NONE) {
        r->failed = *err;
    }
    if (--r->open == 0) {
        end_claim(r);
    }
}

// ---- claiming ----

// Whoever holds the originals back is named: they stay in clear until then.
static void look_at_waiting(Reseal *r, int64_t waiting, int64_t oldest_s)
{
    metric_set(r->options.metrics->clear_waiting, (double)waiting);
    metric_set(r->options.metrics->clear_oldest_seconds, (double)oldest_s);
    if (oldest_s < OLD_S || clock_mono_us() - r->warned_us < WARN_EVERY_US) {
        return;
    }
    r->warned_us = clock_mono_us();
    LOG(LOG_WARN,
        "events that were published in clear are not erased: a reader of EVENTS has not read them "
        "(HINT: start it; if it is gone for good, delete its consumer)",
        log_int("events", waiting), log_int("oldest_s", oldest_s),
        log_text("consumer", r->readers.named));
}

static void on_db_claimed(void *ctx, DbTxn *txn, const Error *err)
{
    Reseal *r = ctx;
    if (err != NULL) {
        end_round(r, err);
        return;
    }
    const PGresult *rows = db_txn_result(txn, 0);
    const PGresult *waiting = db_txn_result(txn, 1);
    look_at_waiting(r, db_get_int(waiting, 0, 0), db_get_int(waiting, 0, 1));
    r->count = (size_t)db_rows(rows);
    r->rows = arena_array(r->arena, r->count, sizeof *r->rows);
    r->open = r->count;
    for (size_t i = 0; i < r->count; i++) {
        r->rows[i] = (ResealRow){
            .reseal = r,
            .sequence = (uint64_t)db_get_int(rows, (int)i, 0),
            .stored_at_us = db_get_time(rows, (int)i, 1),
            .copied = db_get_int(rows, (int)i, 2) != 0,
        };
    }
    if (r->count == 0) {
        end_round(r, NULL);
        return;
    }
    for (size_t i = 0; i < r->count; i++) {
        reseal_row_begin(&r->rows[i]);
    }
}

static void claim(Reseal *r)
{
    DbTxn *txn = db_txn_new(r->options.pool);
    DbParams *p = db_txn_add(txn, &CLAIM, NULL);
    db_i64(p, (int64_t)r->readers.past);
    db_i64(p, LEASE_MS);
    db_i32(p, ROWS_MAX);
    (void)db_txn_add(txn, &WAITING, NULL);
    db_txn_submit(txn, on_db_claimed, r);
}

// ---- how far the readers are ----

static void ask_consumers(Reseal *r);

static void on_consumers(void *ctx, Str reply, const Error *err)
{
    Reseal *r = ctx;
    Error own = {0};
    if (err == NULL && !event_readers_take(reply, r->arena, &r->readers, &own)) {
        err = &own;
    }
    if (err != NULL) {
        end_round(r, err);
    } else if (r->readers.seen < r->readers.total) {
        ask_consumers(r);
    } else {
        claim(r);
    }
}

static void ask_consumers(Reseal *r)
{
    char body[48];
    int len = snprintf(body, sizeof body, "{\"offset\":%zu}", r->readers.seen);
    bus_request(
        r->options.bus, "$JS.API.CONSUMER.LIST.EVENTS", str_of(body, (size_t)len), PAGE_TIMEOUT_MS,
        on_consumers, r);
}

static void on_stream(void *ctx, Str reply, const Error *err)
{
    Reseal *r = ctx;
    Error own = {0};
    if (err == NULL && !event_readers_begin(reply, &r->readers, &own)) {
        err = &own;
    }
    if (err != NULL) {
        end_round(r, err);
    } else {
        ask_consumers(r);
    }
}

static void begin_round(Reseal *r)
{
    if (!bus_connected(r->options.bus) || !db_pool_ready(r->options.pool)) {
        wait_ms(r, r->options.every_ms);
        return;
    }
    r->in_air++;
    r->arena = arena_new(0);
    r->count = 0;
    r->failed = (Error){0};
    bus_request(
        r->options.bus, "$JS.API.STREAM.INFO.EVENTS", STR_EMPTY, PAGE_TIMEOUT_MS, on_stream, r);
}

// ---- life ----

Reseal *reseal_new(const ResealOptions *options)
{
    Reseal *r = xcalloc(1, sizeof *r);
    r->options = *options;
    (void)uv_timer_init(bus_loop(options->bus), &r->timer);
    r->timer.data = r;
    r->warned_us = clock_mono_us();
    if (options->keys != NULL) {
        wait_ms(r, options->every_ms);
    }
    return r;
}

void reseal_stop(Reseal *r)
{
    r->stopping = true;
    (void)uv_timer_stop(&r->timer);
}

bool reseal_idle(const Reseal *r)
{
    return r->in_air == 0;
}

static void on_uv_closed(uv_handle_t *handle)
{
    Reseal *r = handle->data;
    r->on_freed(r->freed_ctx);
    free(r);
}

void reseal_free(Reseal *r, void (*on_freed)(void *ctx), void *ctx)
{
    assert(r->stopping && r->in_air == 0);
    r->on_freed = on_freed;
    r->freed_ctx = ctx;
    uv_close((uv_handle_t *)&r->timer, on_uv_closed);
}
