// SPDX-License-Identifier: Apache-2.0
#include "services/ingest/rewrap.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "common/codec/hash.h"
#include "common/codec/seal.h"

// 500 rows are about 2 ms of this loop; with the pause 10 M keys are done in about 20 minutes.
enum { BATCH = 500, PAUSE_MS = 50, IDLE_MS = 60000, AGAIN_MS = 5000 };

static const DbStatement NEXT = {
    "rewrap_next",
    "SELECT tenant_id, subject, generation, wrapped FROM keys.to_rewrap($1::bytea, $2::int4)"};
static const DbStatement WRITE = {
    "rewrap_write", "SELECT keys.rewrap($1::bytea[], $2::int4[], $3::bytea[], $4::bytea[])"};

struct Rewrap {
    DbPool *pool;
    MasterKey *master;
    uv_timer_t timer;
    Metric *done;
    uint64_t wrapped; // of this rotation
    bool busy;        // a transaction is under way
    bool freeing;
    void (*on_freed)(void *ctx);
    void *freed_ctx;
};

static void look(Rewrap *r);

static void on_timer(uv_timer_t *timer)
{
    look(timer->data);
}

static void on_timer_closed(uv_handle_t *handle)
{
    Rewrap *r = handle->data;
    void (*on_freed)(void *) = r->on_freed;
    void *ctx = r->freed_ctx;
    free(r);
    on_freed(ctx);
}

static void close_timer(Rewrap *r)
{
    uv_close((uv_handle_t *)&r->timer, on_timer_closed);
}

static void look_after(Rewrap *r, uint64_t ms)
{
    r->busy = false;
    if (r->freeing) {
        close_timer(r);
    } else {
        uv_timer_start(&r->timer, on_timer, ms, 0);
    }
}

static void print_own_id(const Rewrap *r, char out[KEY_ID_SIZE])
{
    key_id_print(master_key_info(r->master, KEY_MASTER, 0)->check, out);
}

static void note_end(Rewrap *r)
{
    char id[KEY_ID_SIZE];
    print_own_id(r, id);
    if (r->wrapped > 0) {
        LOG(LOG_INFO, "rotation is complete: the current master key wraps every data key",
            log_text("master_key", id), log_int("wrapped_anew", (int64_t)r->wrapped));
    }
    r->wrapped = 0;
    look_after(r, IDLE_MS);
}

static void on_db_written(void *ctx, DbTxn *txn, const Error *err)
{
    Rewrap *r = ctx;
    if (err != NULL) {
        look_after(r, AGAIN_MS);
        return;
    }
    int64_t done = db_get_int(db_txn_result(txn, 0), 0, 0);
    metric_add(r->done, (double)done);
    r->wrapped += (uint64_t)done;
    look_after(r, PAUSE_MS);
}

// The rows that could be wrapped again, as parameters. A key that cannot be opened stays as it is.
static size_t wrap_rows(const Rewrap *r, const PGresult *rows, DbParams *p, Error *err)
{
    DbArray *subjects = db_array(p, DB_BYTES);
    DbArray *generations = db_array(p, DB_I32);
    DbArray *old = db_array(p, DB_BYTES);
    DbArray *new = db_array(p, DB_BYTES);
    size_t count = 0;
    for (int i = 0; i < db_rows(rows); i++) {
        uint8_t wrapped[WRAPPED_KEY_LEN];
        Str subject = db_get_text(rows, i, 1);
        Str before = db_get_text(rows, i, 3);
        int64_t generation = db_get_int(rows, i, 2);
        if (subject.len == KEY_SUBJECT_LEN && data_key_rewrap(
                                                  r->master, (const uint8_t *)subject.ptr,
                                                  (uint32_t)generation, before, wrapped, err)) {
            db_push_text(subjects, subject);
            db_push_int(generations, generation);
            db_push_text(old, before);
            db_push_text(new, str_of(wrapped, sizeof wrapped));
            count++;
        }
    }
    return count;
}

static void write_rows(Rewrap *r, const PGresult *rows)
{
    Error err = {0};
    DbTxn *txn = db_txn_new(r->pool);
    for (int i = 0; i < db_rows(rows); i++) {
        db_txn_tenant(txn, db_get_text(rows, i, 0));
    }
    if (wrap_rows(r, rows, db_txn_add(txn, &WRITE, NULL), &err) > 0) {
        if (r->wrapped == 0) {
            char id[KEY_ID_SIZE];
            print_own_id(r, id);
            LOG(LOG_INFO, "rotation goes on: the current master key wraps data keys",
                log_text("master_key", id));
        }
        db_txn_submit(txn, on_db_written, r);
        return;
    }
    db_txn_abandon(txn);
    LOG(LOG_ERROR,
        "some data keys cannot be wrapped by the current master key (HINT: stentor keys status)",
        log_int("rows", db_rows(rows)), log_error(&err));
    look_after(r, IDLE_MS);
}

static void on_db_next(void *ctx, DbTxn *txn, const Error *err)
{
    Rewrap *r = ctx;
    const PGresult *rows = err == NULL ? db_txn_result(txn, 0) : NULL;
    if (err != NULL || r->freeing) {
        look_after(r, AGAIN_MS);
    } else if (db_rows(rows) == 0) {
        note_end(r);
    } else {
        write_rows(r, rows);
    }
}

static void look(Rewrap *r)
{
    uint8_t head[WRAPPED_HEAD_LEN] = {1, KEY_MASTER};
    memcpy(head + 2, master_key_info(r->master, KEY_MASTER, 0)->check, KEY_ID_LEN);
    DbTxn *txn = db_txn_new(r->pool);
    DbParams *p = db_txn_add(txn, &NEXT, NULL);
    db_bytes(p, str_of(head, sizeof head));
    db_i32(p, BATCH);
    r->busy = true;
    db_txn_submit(txn, on_db_next, r);
}

Rewrap *rewrap_new(DbPool *pool, MasterKey *master, Metrics *metrics)
{
    Rewrap *r = xcalloc(1, sizeof *r);
    r->pool = pool;
    r->master = master;
    r->done = metrics_counter(
        metrics, "stentor_ingest_keys_rewrapped_total", "",
        "Data keys that the current master key wrapped in place of an older one");
    uv_timer_init(db_pool_loop(pool), &r->timer);
    r->timer.data = r;
    uv_timer_start(&r->timer, on_timer, 0, 0);
    return r;
}

void rewrap_free(Rewrap *rewrap, void (*on_freed)(void *ctx), void *ctx)
{
    rewrap->freeing = true;
    rewrap->on_freed = on_freed;
    rewrap->freed_ctx = ctx;
    uv_timer_stop(&rewrap->timer);
    if (!rewrap->busy) {
        close_timer(rewrap);
    }
}
