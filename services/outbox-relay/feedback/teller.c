// SPDX-License-Identifier: Apache-2.0
#include "services/outbox-relay/feedback/teller.h"

#include <stdlib.h>

#include "common/base/log.h"

enum {
    LOOK_MS = 1000,
    BACK_OFF_MAX_MS = 30 * 1000,
    ROWS_MAX = 500, // of one look
    // Rows in a row that are refused one by one: then it is not the rows, and nothing is asked of
    // the table for a while.
    REFUSALS_MAX = 3,
};

typedef struct Untold {
    Str row_key;
    int32_t attempt;
} Untold;

struct Teller {
    DbPool *pool;
    const RelaySql *sql;
    Arena *arena; // of one look
    Untold *rows;
    size_t count;
    size_t from, to; // what is told now
    size_t width;    // rows at once: halved by a refusal, doubled by a success
    int refusals;    // one by one, without a success between them
    int wait_ms;
    Error trouble; // of the last look; ERROR_NONE: none
    bool busy;
    uv_timer_t timer;
    void (*on_stopped)(void *ctx);
    void *stopped_ctx;
};

static void tell(Teller *teller);

static void on_timer_closed(uv_handle_t *handle)
{
    Teller *teller = handle->data;
    teller->on_stopped(teller->stopped_ctx);
}

// ---- the next look ----

static void on_timer(uv_timer_t *timer);

static void look_again(Teller *teller, int ms)
{
    arena_reset(teller->arena);
    teller->count = 0;
    teller->busy = false;
    if (teller->on_stopped != NULL) {
        uv_close((uv_handle_t *)&teller->timer, on_timer_closed);
    } else {
        uv_timer_start(&teller->timer, on_timer, (uint64_t)ms, 0);
    }
}

static void end_look(Teller *teller, bool full)
{
    if (teller->trouble.kind != ERROR_NONE) {
        LOG_PLAIN(LOG_INFO, "rows are told what became of them again");
    }
    teller->trouble = (Error){0};
    teller->wait_ms = LOOK_MS;
    look_again(teller, full ? 0 : LOOK_MS);
}

// Once for each change, not for each try.
static void back_off(Teller *teller, const Error *err)
{
    if (teller->trouble.kind == ERROR_NONE && err->kind != ERROR_CANCELLED) {
        teller->trouble = *err;
        LOG(LOG_WARN, "rows cannot be told what became of them, trying again", log_error(err));
    }
    int ms = teller->wait_ms;
    teller->wait_ms = 2 * ms < BACK_OFF_MAX_MS ? 2 * ms : BACK_OFF_MAX_MS;
    look_again(teller, ms);
}

// ---- telling ----

static void go_on(Teller *teller)
{
    teller->from = teller->to;
    if (teller->from < teller->count && teller->on_stopped == NULL) {
        tell(teller);
    } else {
        end_look(teller, teller->count == ROWS_MAX);
    }
}

static void on_put_off(void *ctx, DbTxn *txn, const Error *err)
{
    Teller *teller = ctx;
    if (err != NULL) {
        back_off(teller, err);
        return;
    }
    if (db_get_int(db_txn_result(txn, 0), 0, 0) != 0) {
        LOG(LOG_ERROR, "the application's table does not let a row be told what became of it",
            log_str("row", teller->rows[teller->from].row_key));
    }
    if (teller->refusals >= REFUSALS_MAX) {
        const Error many = {ERROR_PERMANENT, "the table refuses one row after the other"};
        back_off(teller, &many);
    } else {
        go_on(teller);
    }
}

static void put_off(Teller *teller, const Error *err)
{
    const Untold *row = &teller->rows[teller->from];
    teller->refusals++;
    DbTxn *txn = db_txn_new(teller->pool);
    DbParams *p = db_txn_add(txn, &teller->sql->tell_later, NULL);
    db_text(p, row->row_key);
    db_i32(p, row->attempt);
    db_text(p, str_from(err->text));
    db_txn_submit(txn, on_put_off, teller);
}

static void on_told(void *ctx, DbTxn *txn, const Error *err)
{
    (void)txn;
    Teller *teller = ctx;
    size_t width = teller->to - teller->from;
    if (err == NULL) {
        teller->refusals = 0;
        teller->width = 2 * width;
        go_on(teller);
    } else if (err->kind != ERROR_PERMANENT || teller->on_stopped != NULL) {
        back_off(teller, err);
    } else if (width > 1) {
        teller->width = width / 2;
        tell(teller);
    } else {
        teller->width = 1;
        put_off(teller, err);
    }
}

static void tell(Teller *teller)
{
    size_t left = teller->count - teller->from;
    teller->to = teller->from + (teller->width < left ? teller->width : left);
    DbTxn *txn = db_txn_new(teller->pool);
    db_txn_add(txn, &teller->sql->plan, NULL);
    DbParams *p = db_txn_add(txn, &teller->sql->tell, NULL);
    DbArray *keys = db_array(p, DB_TEXT);
    DbArray *attempts = db_array(p, DB_I32);
    for (size_t i = teller->from; i < teller->to; i++) {
        db_push_text(keys, teller->rows[i].row_key);
        db_push_int(attempts, teller->rows[i].attempt);
    }
    db_txn_submit(txn, on_told, teller);
}

// ---- looking ----

static void read_rows(Teller *teller, const PGresult *res)
{
    teller->count = (size_t)db_rows(res);
    teller->rows = arena_array(teller->arena, teller->count, sizeof(*teller->rows));
    for (size_t i = 0; i < teller->count; i++) {
        teller->rows[i] = (Untold){
            .row_key = arena_str(teller->arena, db_get_text(res, (int)i, 0)),
            .attempt = (int32_t)db_get_int(res, (int)i, 1),
        };
    }
}

static void on_looked(void *ctx, DbTxn *txn, const Error *err)
{
    Teller *teller = ctx;
    if (err != NULL) {
        back_off(teller, err);
        return;
    }
    read_rows(teller, db_txn_result(txn, 1));
    teller->to = 0;
    teller->width = ROWS_MAX;
    teller->refusals = 0;
    go_on(teller);
}

static void on_timer(uv_timer_t *timer)
{
    Teller *teller = timer->data;
    if (!db_pool_ready(teller->pool)) {
        look_again(teller, LOOK_MS);
        return;
    }
    teller->busy = true;
    DbTxn *txn = db_txn_new(teller->pool);
    db_txn_add(txn, &teller->sql->plan, NULL);
    db_i32(db_txn_add(txn, &teller->sql->untold, NULL), ROWS_MAX);
    db_txn_submit(txn, on_looked, teller);
}

// ---- life ----

Teller *teller_new(DbPool *pool, const RelaySql *sql)
{
    Teller *teller = xcalloc(1, sizeof(*teller));
    teller->pool = pool;
    teller->sql = sql;
    teller->arena = arena_new(16 * 1024);
    teller->wait_ms = LOOK_MS;
    uv_timer_init(db_pool_loop(pool), &teller->timer);
    teller->timer.data = teller;
    return teller;
}

void teller_start(Teller *teller)
{
    uv_timer_start(&teller->timer, on_timer, LOOK_MS, 0);
}

void teller_stop(Teller *teller, void (*on_stopped)(void *ctx), void *ctx)
{
    teller->on_stopped = on_stopped;
    teller->stopped_ctx = ctx;
    uv_timer_stop(&teller->timer);
    if (!teller->busy) {
        uv_close((uv_handle_t *)&teller->timer, on_timer_closed);
    }
}

void teller_free(Teller *teller)
{
    arena_free(teller->arena);
    free(teller);
}

const char *teller_trouble(const Teller *teller)
{
    return teller->trouble.kind != ERROR_NONE ? teller->trouble.text : NULL;
}
