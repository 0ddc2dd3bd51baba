// SPDX-License-Identifier: Apache-2.0
#include "services/outbox-relay/feedback/feedback_retry.h"

#include <stdlib.h>

#include "common/base/log.h"

enum {
    LOOK_MS = 1000,
    BACK_OFF_MAX_MS = 30 * 1000,
    ROWS_MAX = 500, // of one search
    // Rejected rows one after the other: then the table is at fault, and is left alone for a while.
    REFUSALS_MAX = 3,
};

typedef struct PendingFeedback {
    Str row_key;
    int32_t attempt;
} PendingFeedback;

struct FeedbackRetry {
    DbPool *pool;
    const RelaySql *sql;
    Arena *arena; // of one search
    PendingFeedback *rows;
    size_t count;
    size_t from, to; // rows of the current transaction
    size_t width;    // rows of a transaction: halved by a rejection, doubled by a success
    int refusals;    // one after the other, without a success between them
    int wait_ms;
    Error trouble; // of the last search; ERROR_NONE: none
    bool busy;
    uv_timer_t timer;
    void (*on_stopped)(void *ctx);
    void *stopped_ctx;
};

static void write_rows(FeedbackRetry *retry);

static void on_timer_closed(uv_handle_t *handle)
{
    FeedbackRetry *retry = handle->data;
    retry->on_stopped(retry->stopped_ctx);
}

// ---- the next search ----

static void on_timer(uv_timer_t *timer);

static void look_again(FeedbackRetry *retry, int ms)
{
    arena_reset(retry->arena);
    retry->count = 0;
    retry->busy = false;
    if (retry->on_stopped != NULL) {
        uv_close((uv_handle_t *)&retry->timer, on_timer_closed);
    } else {
        uv_timer_start(&retry->timer, on_timer, (uint64_t)ms, 0);
    }
}

static void end_look(FeedbackRetry *retry, bool full)
{
    if (retry->trouble.kind != ERROR_NONE) {
        LOG_PLAIN(LOG_INFO, "feedback is written to the outbox table again");
    }
    retry->trouble = (Error){0};
    retry->wait_ms = LOOK_MS;
    look_again(retry, full ? 0 : LOOK_MS);
}

// Logged once a change, not once a try.
static void back_off(FeedbackRetry *retry, const Error *err)
{
    if (retry->trouble.kind == ERROR_NONE && err->kind != ERROR_CANCELLED) {
        retry->trouble = *err;
        LOG(LOG_WARN, "feedback could not be written to the outbox table, retrying",
            log_error(err));
    }
    int ms = retry->wait_ms;
    retry->wait_ms = 2 * ms < BACK_OFF_MAX_MS ? 2 * ms : BACK_OFF_MAX_MS;
    look_again(retry, ms);
}

// ---- writing ----

static void go_on(FeedbackRetry *retry)
{
    retry->from = retry->to;
    if (retry->from < retry->count && retry->on_stopped == NULL) {
        write_rows(retry);
    } else {
        end_look(retry, retry->count == ROWS_MAX);
    }
}

static void on_put_off(void *ctx, DbTxn *txn, const Error *err)
{
    FeedbackRetry *retry = ctx;
    if (err != NULL) {
        back_off(retry, err);
        return;
    }
    if (db_get_int(db_txn_result(txn, 0), 0, 0) != 0) {
        LOG(LOG_ERROR,
            "the outbox table rejects the feedback of a row, the row is put aside (stentor outbox "
            "show)",
            log_str("row", retry->rows[retry->from].row_key));
    }
    if (retry->refusals >= REFUSALS_MAX) {
        const Error many = {
            .kind = ERROR_PERMANENT, .text = "the outbox table rejects one row after another"};
        back_off(retry, &many);
    } else {
        go_on(retry);
    }
}

static void put_off(FeedbackRetry *retry, const Error *err)
{
    const PendingFeedback *row = &retry->rows[retry->from];
    retry->refusals++;
    DbTxn *txn = db_txn_new(retry->pool);
    DbParams *p = db_txn_add(txn, &retry->sql->feedback_later, NULL);
    db_text(p, row->row_key);
    db_i32(p, row->attempt);
    db_text(p, str_from(err->text));
    db_txn_submit(txn, on_put_off, retry);
}

static void on_written(void *ctx, DbTxn *txn, const Error *err)
{
    (void)txn;
    FeedbackRetry *retry = ctx;
    size_t width = retry->to - retry->from;
    if (err == NULL) {
        retry->refusals = 0;
        retry->width = 2 * width;
        go_on(retry);
    } else if (err->kind != ERROR_PERMANENT || retry->on_stopped != NULL) {
        back_off(retry, err);
    } else if (width > 1) {
        retry->width = width / 2;
        write_rows(retry);
    } else {
        retry->width = 1;
        put_off(retry, err);
    }
}

static void write_rows(FeedbackRetry *retry)
{
    size_t left = retry->count - retry->from;
    retry->to = retry->from + (retry->width < left ? retry->width : left);
    DbTxn *txn = db_txn_new(retry->pool);
    db_txn_add(txn, &retry->sql->plan, NULL);
    DbParams *p = db_txn_add(txn, &retry->sql->feedback_retry, NULL);
    DbArray *keys = db_array(p, DB_TEXT);
    DbArray *attempts = db_array(p, DB_I32);
    for (size_t i = retry->from; i < retry->to; i++) {
        db_push_text(keys, retry->rows[i].row_key);
        db_push_int(attempts, retry->rows[i].attempt);
    }
    db_txn_submit(txn, on_written, retry);
}

// ---- searching ----

static void read_rows(FeedbackRetry *retry, const PGresult *res)
{
    retry->count = (size_t)db_rows(res);
    retry->rows = arena_array(retry->arena, retry->count, sizeof(*retry->rows));
    for (size_t i = 0; i < retry->count; i++) {
        retry->rows[i] = (PendingFeedback){
            .row_key = arena_str(retry->arena, db_get_text(res, (int)i, 0)),
            .attempt = (int32_t)db_get_int(res, (int)i, 1),
        };
    }
}

static void on_looked(void *ctx, DbTxn *txn, const Error *err)
{
    FeedbackRetry *retry = ctx;
    if (err != NULL) {
        back_off(retry, err);
        return;
    }
    read_rows(retry, db_txn_result(txn, 1));
    retry->to = 0;
    retry->width = ROWS_MAX;
    retry->refusals = 0;
    go_on(retry);
}

static void on_timer(uv_timer_t *timer)
{
    FeedbackRetry *retry = timer->data;
    if (!db_pool_ready(retry->pool)) {
        look_again(retry, LOOK_MS);
        return;
    }
    retry->busy = true;
    DbTxn *txn = db_txn_new(retry->pool);
    db_txn_add(txn, &retry->sql->plan, NULL);
    db_i32(db_txn_add(txn, &retry->sql->pending_feedback, NULL), ROWS_MAX);
    db_txn_submit(txn, on_looked, retry);
}

// ---- starting and stopping ----

FeedbackRetry *feedback_retry_new(DbPool *pool, const RelaySql *sql)
{
    FeedbackRetry *retry = xcalloc(1, sizeof(*retry));
    retry->pool = pool;
    retry->sql = sql;
    retry->arena = arena_new(16 * 1024);
    retry->wait_ms = LOOK_MS;
    uv_timer_init(db_pool_loop(pool), &retry->timer);
    retry->timer.data = retry;
    return retry;
}

void feedback_retry_start(FeedbackRetry *retry)
{
    uv_timer_start(&retry->timer, on_timer, LOOK_MS, 0);
}

void feedback_retry_stop(FeedbackRetry *retry, void (*on_stopped)(void *ctx), void *ctx)
{
    retry->on_stopped = on_stopped;
    retry->stopped_ctx = ctx;
    uv_timer_stop(&retry->timer);
    if (!retry->busy) {
        uv_close((uv_handle_t *)&retry->timer, on_timer_closed);
    }
}

void feedback_retry_free(FeedbackRetry *retry)
{
    arena_free(retry->arena);
    free(retry);
}

const char *feedback_retry_trouble(const FeedbackRetry *retry)
{
    return retry->trouble.kind != ERROR_NONE ? retry->trouble.text : NULL;
}
