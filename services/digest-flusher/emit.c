// SPDX-License-Identifier: Apache-2.0
#include "services/digest-flusher/emit.h"

#include <assert.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/crash.h"
#include "common/base/log.h"
#include "common/bus/topology/topology.h"
#include "common/model/rules/fair_share.h"
#include "services/digest-flusher/due_work_sql.h"
#include "services/digest-flusher/status_emit.h"

enum {
    SLEEP_MAX_MS = 5000, // own intake wakes it: this is for what others have put in
    AWAY_MS = 1000,
    SLEEP_EMPTY_MS =
        5, // at least, after an empty claim: this host's clock may be ahead of the database's
};

typedef struct Emission Emission;

struct Emit {
    Bus *bus;
    DbPool *pool;
    int64_t lease_ms;
    FairShare *share;
    EmitHandlers handlers;
    void *ctx;
    uv_timer_t timer;
    bool running;       // a pass is in progress
    int64_t wake_at_us; // start of the next pass; during a pass: as far as known
    Arena *arena;       // of the pass
    Emission *emissions;
    size_t claimed;
    size_t answered;
    size_t stored;
    int64_t late_max_us;
    void (*on_stopped)(void *ctx);
    void *stopped_ctx;
};

struct Emission {
    Emit *emit;
    Str work_id;
    int64_t due_at_us;
    bool stored;
};

static void start_pass(Emit *emit);

// ---- sleeping ----

static void on_wake_timer(uv_timer_t *timer)
{
    start_pass(timer->data);
}

static void sleep_until(Emit *emit, int64_t wake_at_us)
{
    int64_t now_us = clock_now_us();
    int64_t latest_us = now_us + SLEEP_MAX_MS * INT64_C(1000);
    emit->wake_at_us = wake_at_us < latest_us ? wake_at_us : latest_us;
    int64_t wait_us = emit->wake_at_us - now_us;
    // Rounded up: a millisecond early would find nothing and sleep again.
    uint64_t wait_ms = wait_us > 0 ? ((uint64_t)wait_us + 999) / 1000 : 0;
    uv_update_time(bus_loop(emit->bus));
    uv_timer_start(&emit->timer, on_wake_timer, wait_ms, 0);
}

static void on_timer_closed(uv_handle_t *handle)
{
    Emit *emit = handle->data;
    emit->on_stopped(emit->stopped_ctx);
}

static void end_pass(Emit *emit)
{
    arena_free(emit->arena);
    emit->arena = NULL;
    emit->running = false;
    if (emit->on_stopped != NULL) {
        uv_close((uv_handle_t *)&emit->timer, on_timer_closed);
        return;
    }
    int64_t soonest_us = emit->claimed > 0 ? 0 : clock_now_us() + SLEEP_EMPTY_MS * INT64_C(1000);
    sleep_until(emit, emit->wake_at_us > soonest_us ? emit->wake_at_us : soonest_us);
}

void emit_wake_at(Emit *emit, int64_t due_us)
{
    if (emit->on_stopped != NULL || due_us >= emit->wake_at_us) {
        return;
    }
    if (emit->running) {
        emit->wake_at_us = due_us;
    } else {
        sleep_until(emit, due_us);
    }
}

// ---- a pass, in the order in which it happens ----

static void on_done_committed(void *ctx, DbTxn *txn, const Error *err)
{
    (void)txn;
    Emit *emit = ctx;
    if (err != NULL) {
        LOG(LOG_WARN,
            "published work could not be deleted, it is published again under the same ids",
            log_int("count", (int64_t)emit->stored), log_error(err));
    } else {
        CRASH_POINT("flusher.deleted");
        emit->handlers.on_emitted(emit->ctx, emit->stored, emit->late_max_us);
    }
    end_pass(emit);
}

// Killed between the acks and this delete: the lease expires and the rows are published again under
// the same ids. Within the duplicate window JetStream drops them; after it the stages do, and the
// ledger refuses a second send. tests/integration/faults/test_kill.py kills the flusher there.
static void delete_stored(Emit *emit)
{
    CRASH_POINT("flusher.published");
    DbTxn *txn = db_txn_new(emit->pool);
    Str *work_ids = arena_array(emit->arena, emit->stored, sizeof(Str));
    size_t count = 0;
    for (size_t i = 0; i < emit->claimed; i++) {
        if (emit->emissions[i].stored) {
            work_ids[count++] = emit->emissions[i].work_id;
        }
    }
    due_work_delete(txn, work_ids, count);
    db_txn_submit(txn, on_done_committed, emit);
}

static void finish_publishing(Emit *emit)
{
    if (emit->stored < emit->claimed) {
        LOG(LOG_WARN, "due work could not be published, it is retried when its lease ends",
            log_int("count", (int64_t)(emit->claimed - emit->stored)));
    }
    if (emit->stored > 0) {
        delete_stored(emit);
    } else {
        end_pass(emit);
    }
}

static void count_answer(Emission *emission, const Error *err)
{
    Emit *emit = emission->emit;
    if (err == NULL) {
        int64_t late_us = clock_now_us() - emission->due_at_us;
        emit->late_max_us = late_us > emit->late_max_us ? late_us : emit->late_max_us;
        emission->stored = true;
        emit->stored++;
    }
    emit->answered++;
    if (emit->answered == emit->claimed) {
        finish_publishing(emit);
    }
}

static void on_bus_acked(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    (void)sequence;
    (void)duplicate;
    count_answer(ctx, err);
}

static Str text_of(const PGresult *rows, int row, int column)
{
    return db_is_null(rows, row, column) ? STR_EMPTY : db_get_text(rows, row, column);
}

static bool status_row(Emit *emit, const PGresult *rows, int row, BusOut *ret_out, Error *err)
{
    StatusEmit status = {
        .status = db_get_text(rows, row, CLAIM_STATUS),
        .reason_code = text_of(rows, row, CLAIM_REASON_CODE),
        .detail = text_of(rows, row, CLAIM_DETAIL),
        .window_id = text_of(rows, row, CLAIM_WINDOW_ID),
        .at_us = db_get_time(rows, row, CLAIM_DUE_AT),
        .payload = db_get_text(rows, row, CLAIM_PAYLOAD),
    };
    return status_emit(&status, emit->arena, ret_out, err);
}

// A row that is published again after a crash may get another lane: it has the same event id there,
// and the ledger rejects the second send.
static const char *subject_of(Emit *emit, Str stored)
{
    char *subject = arena_alloc(emit->arena, SUBJECT_SIZE);
    Str rest = stored, ntf, stage, token, tenant;
    Priority lane = PRIORITY_NONE;
    bool has_lane = str_split(&rest, '.', &ntf) && str_split(&rest, '.', &stage) &&
                    str_split(&rest, '.', &token) && str_split(&rest, '.', &tenant) &&
                    str_eq(ntf, STR("ntf")) && priority_from_name(token, &lane);
    Priority share = has_lane ? fair_share_lane(emit->share, tenant, lane, clock_mono_us()) : lane;
    if (share == lane) {
        return arena_cstr(emit->arena, stored);
    }
    if (str_eq(stage, STR("request"))) {
        subject_request(subject, share, tenant);
    } else {
        subject_rendered(subject, share, tenant);
    }
    return subject;
}

static bool out_of(Emit *emit, const PGresult *rows, int row, BusOut *ret_out, Error *err)
{
    if (!db_is_null(rows, row, CLAIM_STATUS)) {
        return status_row(emit, rows, row, ret_out, err);
    }
    *ret_out = (BusOut){
        .subject = subject_of(emit, db_get_text(rows, row, CLAIM_SUBJECT)),
        .event_id = db_get_text(rows, row, CLAIM_EVENT_ID),
        .payload = db_get_text(rows, row, CLAIM_PAYLOAD),
    };
    if (str_starts(str_from(ret_out->subject), STR("evt."))) {
        static const BusHeader packed[] = {{"Content-Type", {"application/protobuf", 20}}};
        ret_out->headers = packed; // the subject names the message type
        ret_out->header_count = 1;
    }
    return true;
}

static bool publish_row(Emit *emit, const PGresult *rows, int row)
{
    CRASH_POINT("flusher.claimed");
    Emission *emission = &emit->emissions[row];
    emission->emit = emit;
    emission->work_id = arena_str(emit->arena, db_get_text(rows, row, CLAIM_WORK_ID));
    emission->due_at_us = db_get_time(rows, row, CLAIM_DUE_AT);
    BusOut out;
    Error err = {0};
    if (!out_of(emit, rows, row, &out, &err)) {
        LOG(LOG_ERROR, "a row of due work cannot be published, it stays in the table",
            log_str("work", emission->work_id), log_error(&err));
        return false;
    }
    bus_publish(emit->bus, &out, on_bus_acked, emission);
    return true;
}

static void publish_claimed(Emit *emit, const PGresult *rows)
{
    emit->claimed = (size_t)db_rows(rows);
    if (emit->claimed == 0) {
        end_pass(emit);
        return;
    }
    emit->emissions = arena_array(emit->arena, emit->claimed, sizeof(Emission));
    for (int row = 0; row < db_rows(rows); row++) {
        emit->answered += publish_row(emit, rows, row) ? 0 : 1;
    }
    if (emit->answered == emit->claimed) { // acks come from the loop: none could be published
        finish_publishing(emit);
    }
}

// Killed between the claim and the publish: the lease expires, and another process or the next one
// claims the rows.
static void on_claim_done(void *ctx, DbTxn *txn, const Error *err)
{
    Emit *emit = ctx;
    if (err != NULL) {
        LOG(LOG_WARN, "due work could not be claimed, retrying", log_error(err));
        end_pass(emit);
        return;
    }
    const PGresult *rows = db_txn_result(txn, 0);
    int64_t next_us = db_get_time(db_txn_result(txn, 1), 0, 0);
    if (db_rows(rows) == DUE_WORK_CLAIM_MAX) {
        next_us = 1; // more rows are due
    }
    if (next_us > 0 && next_us < emit->wake_at_us) {
        emit->wake_at_us = next_us;
    }
    publish_claimed(emit, rows);
}

static void start_pass(Emit *emit)
{
    // Without NATS a claim would only hold rows back until its lease expires.
    if (!bus_connected(emit->bus) || !db_pool_ready(emit->pool)) {
        sleep_until(emit, clock_now_us() + AWAY_MS * INT64_C(1000));
        return;
    }
    emit->running = true;
    emit->wake_at_us = INT64_MAX;
    emit->claimed = emit->answered = emit->stored = 0;
    emit->late_max_us = 0;
    emit->arena = arena_new(0);
    DbTxn *txn = db_txn_new(emit->pool);
    db_txn_lazy_commit(txn); // a claim lost in a crash of Postgres is only made again
    due_work_claim(txn, emit->lease_ms);
    db_txn_submit(txn, on_claim_done, emit);
}

// ---- starting and stopping ----

Emit *emit_new(
    Bus *bus, DbPool *pool, int64_t lease_ms, int64_t share_per_s, const EmitHandlers *handlers,
    void *ctx)
{
    Emit *emit = xcalloc(1, sizeof(*emit));
    emit->bus = bus;
    emit->pool = pool;
    emit->lease_ms = lease_ms;
    emit->share = fair_share_new(share_per_s);
    emit->handlers = *handlers;
    emit->ctx = ctx;
    uv_timer_init(bus_loop(bus), &emit->timer);
    emit->timer.data = emit;
    sleep_until(emit, 0);
    return emit;
}

void emit_stop(Emit *emit, void (*on_stopped)(void *ctx), void *ctx)
{
    assert(emit->on_stopped == NULL);
    emit->on_stopped = on_stopped;
    emit->stopped_ctx = ctx;
    if (!emit->running) {
        uv_close((uv_handle_t *)&emit->timer, on_timer_closed);
    }
}

void emit_free(Emit *emit)
{
    if (emit != NULL) {
        fair_share_free(emit->share);
        free(emit);
    }
}
