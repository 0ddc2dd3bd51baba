// SPDX-License-Identifier: Apache-2.0
#include "services/ingest/accept/sweep.h"

#include <assert.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/crash.h"
#include "common/base/log.h"

enum {
    LEASE_MS = 15000, // a claimed row comes again after this: no publish is awaited for longer
    EAGER_AGE_MS =
        2000, // when rows were left on purpose: only those on their way right now are too young
    EAGER_MS = 3 * EAGER_AGE_MS,
    BUSY_MS = 20,  // between two claims while there is more
    FULL_MS = 100, // before another look at whether NATS has room, and at what was left
    ROWS_FIRST = 4,
    ROWS_MAX = 512,
    EVENTS_WANTED = 2000, // per claim; the number of rows adapts to it
    FORGET_EVERY_MS = 60000,
    FORGET_BATCH = 5000,
    COUNTERS_EVERY = 10, // times that keys are forgotten: the limits' counters are read whole
};

struct Sweep {
    SweepOptions options;
    uv_timer_t timer;
    int64_t eager_until_us; // of clock_mono_us
    bool stopping;
    int in_air;
    int64_t at_most;
    int64_t forget_at_us;
    int forgot;          // times so far
    bool counters_asked; // the limits' counters too, with what is in flight
    void (*on_freed)(void *ctx);
    void *freed_ctx;
};

static const DbStatement CLAIM = {
    .name = "ingest_claim_unpublished",
    .sql = "SELECT accept_id, tenant_id, events FROM ingest.claim_unpublished("
           "$1::int8 * interval '1 millisecond', $2::int8 * interval '1 millisecond', $3::int4)",
};

// What this process has left, as soon as there is room: it need not be 2 s old. A row that failed
// in a sweep is still claimed, and comes by age.
static const DbStatement CLAIM_LEFT = {
    .name = "ingest_claim_left",
    .sql = "SELECT accept_id, tenant_id, events FROM ingest.claim_left("
           "$1::int8[], $2::int8 * interval '1 millisecond')",
};

static const DbStatement FORGET = {
    .name = "ingest_forget_keys",
    .sql = "SELECT ingest.forget_idempotency_keys(interval '24 hours', $1::int4)",
};

static const DbStatement FORGET_COUNTERS = {
    .name = "ingest_forget_counters",
    .sql = "SELECT ingest.forget_gate_counters($1::int4)",
};

static void look(Sweep *s);

static void on_timer_sweep(uv_timer_t *timer)
{
    Sweep *s = timer->data;
    look(s);
}

static void look_again(Sweep *s, int64_t after_ms)
{
    if (!s->stopping) {
        (void)uv_timer_start(&s->timer, on_timer_sweep, (uint64_t)after_ms, 0);
    }
}

static bool is_eager(const Sweep *s)
{
    return clock_mono_us() < s->eager_until_us;
}

static size_t publish_row(Sweep *s, const PGresult *res, int i, Arena *arena)
{
    CRASH_POINT("ingest.sweep_claimed");
    Frame *frames = NULL;
    size_t count = 0;
    Error err = {0};
    if (!frames_unpack(db_get_text(res, i, 2), arena, &frames, &count, &err)) {
        LOG(LOG_ERROR,
            "row of ingest.accept_log cannot be published, its notifications are not sent",
            log_str("tenant", db_get_text(res, i, 1)), log_int("accept_id", db_get_int(res, i, 0)),
            log_error(&err));
        return 0;
    }
    bool sent = row_publisher_send(
        s->options.publisher, ROW_PUBLISHER_SWEEP_MAX,
        &(PublishedRow){
            .accept_id = db_get_int(res, i, 0),
            .tenant = db_get_text(res, i, 1),
            .frames = frames,
            .count = count,
            .lowered = true}); // it has waited: what comes now does not wait behind all of it
    metric_add(s->options.metrics->swept, sent ? 1 : 0);
    return count;
}

// Killed between the claim and the marks: the lease runs out and the rows are published again,
// under the same ids (tests/integration/faults/test_kill.py).
static void publish_rows(Sweep *s, const PGresult *res)
{
    size_t events = 0;
    int rows = db_rows(res);
    for (int i = 0; i < rows; i++) {
        Arena *arena = arena_new(0);
        events += publish_row(s, res, i, arena);
        arena_free(arena);
    }
    bool more = rows >= s->at_most || row_publisher_has_ids(s->options.publisher);
    // Rows hold 1 .. 2,000 notifications: the next claim asks for as many as make a sensible number
    // of events.
    int64_t wanted = events == 0 ? ROWS_FIRST : s->at_most * EVENTS_WANTED / (int64_t)events;
    s->at_most = wanted < 1 ? 1 : wanted > ROWS_MAX ? ROWS_MAX : wanted;
    bool soon = is_eager(s) && s->options.every_ms > EAGER_AGE_MS;
    look_again(s, more ? BUSY_MS : soon ? EAGER_AGE_MS : s->options.every_ms);
}

static void on_db_claimed(void *ctx, DbTxn *txn, const Error *err)
{
    Sweep *s = ctx;
    s->in_air--;
    if (err == NULL) {
        publish_rows(s, db_txn_result(txn, 0));
        return;
    }
    if (err->kind != ERROR_TRANSIENT && err->kind != ERROR_CANCELLED) {
        LOG(LOG_ERROR, "sweep of ingest.accept_log failed, the next one tries again",
            log_error(err));
    }
    look_again(s, s->options.every_ms);
}

static void on_db_forgotten(void *ctx, DbTxn *txn, const Error *err)
{
    Sweep *s = ctx;
    s->in_air--;
    bool full = err == NULL && db_get_int(db_txn_result(txn, 0), 0, 0) >= FORGET_BATCH;
    bool counters_full =
        err == NULL && s->counters_asked && db_get_int(db_txn_result(txn, 1), 0, 0) >= FORGET_BATCH;
    if (counters_full) {
        s->forgot = 0;
    }
    if (full || counters_full) {
        s->forget_at_us = 0; // there are more: with the next look
    }
}

static void forget_keys(Sweep *s)
{
    int64_t now_us = clock_mono_us();
    if (now_us < s->forget_at_us) {
        return;
    }
    s->forget_at_us = now_us + FORGET_EVERY_MS * INT64_C(1000);
    DbTxn *txn = db_txn_new(s->options.pool);
    db_i32(db_txn_add(txn, &FORGET, NULL), FORGET_BATCH);
    s->counters_asked = s->forgot++ % COUNTERS_EVERY == 0;
    if (s->counters_asked) {
        db_i32(db_txn_add(txn, &FORGET_COUNTERS, NULL), FORGET_BATCH);
    }
    s->in_air++;
    db_txn_submit(txn, on_db_forgotten, s);
}

static void add_claim(const Sweep *s, DbTxn *txn)
{
    DbParams *p = db_txn_add(txn, &CLAIM, NULL);
    bool eager = is_eager(s) && s->options.older_than_ms > EAGER_AGE_MS;
    db_i64(p, eager ? EAGER_AGE_MS : s->options.older_than_ms);
    db_i64(p, LEASE_MS);
    db_i32(p, (int32_t)s->at_most);
}

static void add_claim_left(const Sweep *s, DbTxn *txn)
{
    int64_t ids[ROWS_MAX];
    size_t count = row_publisher_take_ids(s->options.publisher, ids, (size_t)s->at_most);
    DbParams *p = db_txn_add(txn, &CLAIM_LEFT, NULL);
    DbArray *array = db_array(p, DB_I64);
    for (size_t i = 0; i < count; i++) {
        db_push_int(array, ids[i]);
    }
    db_i64(p, LEASE_MS);
}

static void look(Sweep *s)
{
    if (!db_pool_ready(s->options.pool)) {
        look_again(s, s->options.every_ms);
        return;
    }
    forget_keys(s);
    if (!row_publisher_open(s->options.publisher)) {
        look_again(s, is_eager(s) ? FULL_MS : s->options.every_ms);
        return;
    }
    DbTxn *txn = db_txn_new(s->options.pool);
    if (row_publisher_has_ids(s->options.publisher)) {
        add_claim_left(s, txn);
    } else {
        add_claim(s, txn);
    }
    s->in_air++;
    db_txn_submit(txn, on_db_claimed, s);
}

Sweep *sweep_new(const SweepOptions *options)
{
    Sweep *s = xcalloc(1, sizeof *s);
    s->options = *options;
    s->at_most = ROWS_FIRST;
    (void)uv_timer_init(options->loop, &s->timer);
    s->timer.data = s;
    look_again(s, options->every_ms);
    return s;
}

void sweep_now(Sweep *s)
{
    s->eager_until_us = clock_mono_us() + EAGER_MS * INT64_C(1000);
    uint64_t soon_ms = row_publisher_has_ids(s->options.publisher) ? FULL_MS : EAGER_AGE_MS;
    if (s->in_air == 0 && uv_timer_get_due_in(&s->timer) > soon_ms) {
        look_again(s, (int64_t)soon_ms);
    }
}

void sweep_stop(Sweep *s)
{
    s->stopping = true;
    (void)uv_timer_stop(&s->timer);
}

bool sweep_idle(const Sweep *s)
{
    return s->in_air == 0;
}

static void on_uv_closed(uv_handle_t *handle)
{
    Sweep *s = handle->data;
    s->on_freed(s->freed_ctx);
    free(s);
}

void sweep_free(Sweep *s, void (*on_freed)(void *ctx), void *ctx)
{
    assert(s->stopping && s->in_air == 0);
    s->on_freed = on_freed;
    s->freed_ctx = ctx;
    uv_close((uv_handle_t *)&s->timer, on_uv_closed);
}
