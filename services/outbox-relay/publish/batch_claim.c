// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "services/outbox-relay/publish/batch_internal.h"

enum {
    // Publishing stops this long before the claim expires, so that messages in flight arrive before
    // another relay starts.
    MARGIN_MS = 2000,
};

// ---- ending ----

void batch_free(Batch *batch)
{
    arena_free(batch->arena);
    free(batch);
}

static void on_timer_closed(uv_handle_t *handle)
{
    Batch *batch = handle->data;
    if (--batch->handles > 0) {
        return;
    }
    BatchHandlers handlers = batch->handlers;
    void *ctx = batch->ctx;
    BatchClaim claim = batch->claim;
    BatchEnd end = batch->end;
    batch_free(batch);
    handlers.ended(ctx, &claim, &end);
}

void batch_set_stuck(Batch *batch, bool stuck)
{
    batch->context->stuck += (stuck ? 1 : 0) - (batch->stuck ? 1 : 0);
    batch->stuck = stuck;
}

void batch_end(Batch *batch)
{
    batch->ended = true;
    uv_timer_stop(&batch->renew_timer);
    if (batch->renewing) {
        return;
    }
    batch_set_stuck(batch, false);
    batch->handles = 2;
    uv_close((uv_handle_t *)&batch->timer, on_timer_closed);
    uv_close((uv_handle_t *)&batch->renew_timer, on_timer_closed);
}

void batch_abandon(Batch *batch, const char *why)
{
    batch->end.left = batch->count - batch->end.marked - batch->end.refused;
    LOG(LOG_WARN, "a claim is abandoned, another relay adopts it when it expires",
        log_str("claim", batch->claim_id), log_text("reason", why),
        log_int("rows", (int64_t)batch->end.left));
    batch_end(batch);
}

// ---- renewing the claim until it is released ----

int64_t batch_end_of_claim(const Batch *batch)
{
    return batch->asked_at_us + (batch->context->lease_ms - MARGIN_MS) * INT64_C(1000);
}

static void on_renew_timer(uv_timer_t *timer);

void batch_start_renew_timer(Batch *batch)
{
    uv_timer_start(&batch->renew_timer, on_renew_timer, (uint64_t)batch->context->lease_ms / 3, 0);
}

static void on_renew_done(void *ctx, DbTxn *txn, const Error *err)
{
    Batch *batch = ctx;
    batch->renewing = false;
    if (err == NULL) {
        bool ours = db_rows(db_txn_result(txn, 0)) == 1;
        batch->until_us = ours ? batch_end_of_claim(batch) : 0;
    }
    if (batch->ended) {
        batch_end(batch);
    } else {
        batch_start_renew_timer(batch);
    }
}

// Rows of one key are published one by one, so a batch may outlast its claim.
static void renew(Batch *batch)
{
    batch->renewing = true;
    DbTxn *txn = db_txn_new(batch->context->pool);
    DbParams *p = db_txn_add(txn, &batch->context->sql->renew, NULL);
    db_text(p, batch->claim_id);
    db_i64(p, batch->context->lease_ms);
    batch->asked_at_us = clock_mono_us();
    db_txn_submit(txn, on_renew_done, batch);
}

static void on_renew_timer(uv_timer_t *timer)
{
    renew(timer->data);
}
