// SPDX-License-Identifier: Apache-2.0
#include "services/outbox-relay/publish/batch.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/crash.h"
#include "common/base/log.h"
#include "services/outbox-relay/publish/batch_internal.h"
#include "services/outbox-relay/publish/claim.h"
#include "services/outbox-relay/publish/post.h"
#include "services/outbox-relay/publish/request_ids.h"
#include "services/outbox-relay/publish/write_back.h"
#include "services/outbox-relay/row/row.h"

enum {
    RETRY_MIN_MS = 100,
    RETRY_MAX_MS = 2000,
    // Between passes of the write-back; STUCK_*: the table rejects one row after the other.
    PASS_MAX_MS = 2000,
    PASS_STEP_MS = 500,
    STUCK_MIN_MS = 1000,
    STUCK_MAX_MS = 30 * 1000,
};

static const int64_t REPEATS_QUIET_US = INT64_C(60000000); // between two log lines about repeats

static void note_requests(Batch *batch);
static void post_rows(Batch *batch);
static void finish(Batch *batch);

// ---- retries ----

static void on_retry_timer(uv_timer_t *timer)
{
    Batch *batch = timer->data;
    if (batch->posted) {
        finish(batch);
    } else {
        note_requests(batch);
    }
}

// Stored rows are marked even after the claim has expired, so a relay whose database is away
// retries until it stops.
static void try_again(Batch *batch, const Error *err)
{
    if (batch->context->stopping || err->kind == ERROR_CANCELLED) {
        batch_abandon(batch, err->text);
        return;
    }
    if (!batch->context->away) { // logged once; the pool logs the state of the connection
        batch->context->away = true;
        LOG(LOG_WARN, "the application's database did not store the outcome of a batch, retrying",
            log_error(err));
    }
    uv_timer_start(&batch->timer, on_retry_timer, (uint64_t)batch->retry_ms, 0);
    batch->retry_ms = 2 * batch->retry_ms < RETRY_MAX_MS ? 2 * batch->retry_ms : RETRY_MAX_MS;
}

static void note_answer(Batch *batch)
{
    batch->retry_ms = RETRY_MIN_MS;
    if (batch->context->away) {
        batch->context->away = false;
        LOG_PLAIN(LOG_INFO, "the application's database stores outcomes of batches again");
    }
}

// ---- writing back ----

// In small steps, so that a stopping relay need not wait.
static void on_pass_timer(uv_timer_t *timer)
{
    Batch *batch = timer->data;
    if (batch->context->stopping) {
        batch_abandon(batch, "the relay stops before all published rows could be marked");
    } else if (clock_mono_us() < batch->pass_at_us) {
        uv_timer_start(&batch->timer, on_pass_timer, PASS_STEP_MS, 0);
    } else {
        finish(batch);
    }
}

// The application holds rows, or its table rejects them: retry after a pause. The claim is renewed
// meanwhile.
static void pause_write_back(Batch *batch)
{
    if (batch->back.trouble && !batch->stuck) {
        LOG(LOG_WARN, "the outbox table rejects the marking of published rows, retrying",
            log_int("rows", (int64_t)batch->back.count));
    }
    batch_set_stuck(batch, batch->back.trouble);
    int least_ms = batch->stuck ? STUCK_MIN_MS : RETRY_MIN_MS;
    int most_ms = batch->stuck ? STUCK_MAX_MS : PASS_MAX_MS;
    int ms = batch->pass_ms > least_ms ? batch->pass_ms : least_ms;
    ms = ms < most_ms ? ms : most_ms;
    batch->pass_ms = 2 * ms;
    batch->back.trouble = false;
    batch->pass_at_us = clock_mono_us() + ms * INT64_C(1000);
    uv_timer_start(
        &batch->timer, on_pass_timer, (uint64_t)(ms < PASS_STEP_MS ? ms : PASS_STEP_MS), 0);
}

static void go_on(Batch *batch)
{
    switch (write_back_step(&batch->back)) {
    case WRITE_BACK_WRITE:
        finish(batch);
        break;
    case WRITE_BACK_PAUSE:
        pause_write_back(batch);
        break;
    case WRITE_BACK_DONE:
        batch_end(batch);
        break;
    }
}

static void on_finish_done(void *ctx, DbTxn *txn, const Error *err)
{
    Batch *batch = ctx;
    if (err != NULL && !write_back_narrow(&batch->back, err)) {
        try_again(batch, err);
        return;
    }
    if (err != NULL) { // the table rejects one of these rows: isolate it
        go_on(batch);
        return;
    }
    note_answer(batch);
    CRASH_POINT("outbox.marked");
    WriteBackCounts counts = write_back_take(&batch->back, txn);
    batch->end.marked += counts.marked;
    batch->end.refused += counts.refused;
    batch->end.left += counts.left;
    go_on(batch);
}

// Killed before this commit: the claim is adopted and its rows published again under the same ids,
// which JetStream drops within its duplicate window and the readers after it. Killed after it:
// nothing is left to do. (test_outbox_crash.py)
static void finish(Batch *batch)
{
    DbTxn *txn = db_txn_new(batch->context->pool);
    write_back_write(&batch->back, txn);
    db_txn_submit(txn, on_finish_done, batch);
}

// A line for each row, by its key: of a table with a sequence_number that is it.
static void log_rows(const Batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        if (batch->posts[i].fate == POST_STORED && log_takes_notification(LOG_INFO)) {
            LOG(LOG_INFO, "an outbox row was published",
                log_str("mapping", batch->context->sql->mapping->name),
                log_str("row", batch->rows[i].key),
                log_text("subject", batch->posts[i].out.subject));
        }
    }
}

static void count_posts(Batch *batch)
{
    log_rows(batch);
    const Post *refused = NULL;
    size_t refusals = 0;
    for (size_t i = 0; i < batch->count; i++) {
        batch->end.published += batch->posts[i].fate == POST_STORED ? 1 : 0;
        if (batch->posts[i].fate == POST_REFUSED) {
            refused = refused != NULL ? refused : &batch->posts[i];
            refusals++;
        }
    }
    if (refused != NULL) {
        LOG(LOG_WARN, "rows do not fit their mapping and are rejected",
            log_int("count", (int64_t)refusals),
            log_str("row", batch->rows[refused - batch->posts].key),
            log_str("reason", refused->reason));
    }
}

// JetStream already had rows of a fresh claim: either an ack was lost and the row was given back,
// or two rows have one id and one of them is lost.
static void log_repeats(Batch *batch)
{
    size_t repeats = 0;
    size_t first = 0;
    for (size_t i = 0; i < batch->count; i++) {
        first = batch->posts[i].repeated && repeats == 0 ? i : first;
        repeats += batch->posts[i].repeated ? 1 : 0;
    }
    int64_t now_us = clock_mono_us();
    if (repeats == 0 || batch->claim.adopted || now_us < batch->context->repeats_quiet_until_us) {
        return;
    }
    batch->context->repeats_quiet_until_us = now_us + REPEATS_QUIET_US;
    LOG(LOG_WARN, "rows were already stored under their message ids",
        log_int("count", (int64_t)repeats), log_str("row", batch->rows[first].key),
        log_text(
            "hint", "a repeat after a publish without an answer; if there was none, two rows share "
                    "one id"));
}

static void on_posted(void *ctx)
{
    Batch *batch = ctx;
    CRASH_POINT("outbox.published");
    batch->posted = true;
    count_posts(batch);
    log_repeats(batch);
    write_back_init(
        &batch->back, batch->context->sql, batch->claim_id, batch->rows, batch->posts, batch->count,
        batch->arena);
    finish(batch);
}

// ---- publishing ----

static void make_message(Batch *batch, size_t at)
{
    Error err = {0};
    const RelaySql *sql = batch->context->sql;
    if (row_message(
            sql->mapping, sql->kinds, &batch->rows[at], batch->arena, &batch->messages[at], &err)) {
        batch->posts[at].out = batch->messages[at].out;
        batch->posts[at].out.subject = arena_printf(
            batch->arena, "%s%s", batch->context->intake, batch->messages[at].out.subject);
    } else {
        batch->posts[at].fate = POST_REFUSED;
        batch->posts[at].reason = arena_str(batch->arena, str_from(err.text));
    }
}

static void post_rows(Batch *batch)
{
    batch->until_us = batch_end_of_claim(batch);
    const PostRun run = {
        .bus = batch->context->bus,
        .arena = batch->arena,
        .posts = batch->posts,
        .count = batch->count,
        .until_us = &batch->until_us,
        .on_done = on_posted,
        .ctx = batch,
    };
    batch_start_renew_timer(batch);
    post_all(&run);
}

// ---- requests: feedback finds a row by the notification id recorded here ----

static void on_noted(void *ctx, DbTxn *txn, const Error *err)
{
    Batch *batch = ctx;
    if (err != NULL) {
        try_again(batch, err);
        return;
    }
    note_answer(batch);
    CRASH_POINT("outbox.noted");
    const PGresult *noted = db_txn_result(txn, 1);
    if (db_rows(noted) == 0) {
        batch_abandon(batch, "another relay has adopted the claim");
        return;
    }
    const RequestIds requests = {batch->rows, batch->messages, batch->posts, batch->count};
    size_t *at = arena_array(batch->arena, batch->count, sizeof(*at));
    size_t changed = request_ids_read(&requests, noted, batch->arena, at);
    for (size_t i = 0; i < changed; i++) {
        make_message(batch, at[i]);
    }
    post_rows(batch);
}

// Killed before this commit: no id is known outside. Killed after it: the relay that adopts the
// claim finds the ids and publishes the same ones. (test_outbox_crash.py)
static void note_requests(Batch *batch)
{
    DbTxn *txn = db_txn_new(batch->context->pool);
    const RequestIds requests = {batch->rows, batch->messages, batch->posts, batch->count};
    if (!request_ids_note(&requests, batch->context->sql, batch->claim_id, txn)) {
        db_txn_abandon(txn);
        post_rows(batch); // no row fits
        return;
    }
    db_txn_submit(txn, on_noted, batch);
}

// ---- claiming ----

static void read_row(Batch *batch, const PGresult *res, int at, int64_t now_us)
{
    const Mapping *mapping = batch->context->sql->mapping;
    Arena *arena = batch->arena;
    int count = mapping->column_count + mapping->member_count;
    RowValue *values = arena_array(arena, (size_t)count, sizeof(*values));
    for (int i = 0; i < count; i++) {
        values[i].is_null = db_is_null(res, at, CLAIM_FIELDS + i);
        values[i].text = values[i].is_null
                             ? STR_EMPTY
                             : arena_str(arena, db_get_text(res, at, CLAIM_FIELDS + i));
    }
    int64_t made_at_us = db_get_time(res, at, CLAIM_MADE_AT);
    batch->rows[at] = (Row){
        .key = arena_str(arena, db_get_text(res, at, CLAIM_ROW_KEY)),
        .source = arena_str(arena, db_get_text(res, at, CLAIM_SOURCE)),
        .attempt = (int32_t)db_get_int(res, at, CLAIM_ATTEMPT),
        .values = values,
        .made_at_us = made_at_us != 0 ? made_at_us : now_us,
    };
    if (!db_is_null(res, at, CLAIM_ORDERING_KEY)) {
        batch->posts[at].ordering_key = arena_str(arena, db_get_text(res, at, CLAIM_ORDERING_KEY));
        batch->claim.keyed = true;
    }
}

static void read_positions(Batch *batch, const PGresult *res)
{
    BatchClaim *claim = &batch->claim;
    bool any = false;
    for (int at = 0; at < db_rows(res); at++) {
        if (db_is_null(res, at, CLAIM_POSITION)) {
            continue;
        }
        int64_t position = db_get_int(res, at, CLAIM_POSITION);
        bool first = !any || position < claim->first_position;
        bool last = !any || position > claim->last_position;
        claim->first_position = first ? position : claim->first_position;
        claim->last_position = last ? position : claim->last_position;
        any = true;
    }
}

static void read_rows(Batch *batch, const PGresult *res)
{
    batch->count = (size_t)db_rows(res);
    batch->claim.rows = batch->count;
    batch->rows = arena_array(batch->arena, batch->count, sizeof(*batch->rows));
    batch->posts = arena_array(batch->arena, batch->count, sizeof(*batch->posts));
    batch->messages = arena_array(batch->arena, batch->count, sizeof(*batch->messages));
    int64_t now_us = clock_now_us();
    for (int at = 0; at < db_rows(res); at++) {
        read_row(batch, res, at, now_us);
    }
    read_positions(batch, res);
}

static void start_work(Batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        make_message(batch, i);
    }
    if (mapping_is_request(batch->context->sql->mapping)) {
        note_requests(batch);
    } else {
        post_rows(batch);
    }
}

static void read_claim(Batch *batch, DbTxn *txn)
{
    const RelaySql *sql = batch->context->sql;
    batch->claim.adopted = batch->query.adopt;
    batch->claim.edge = BATCH_FROM_START;
    batch->context->begin_done = batch->context->begin_done || !batch->query.adopt;
    if (!batch->query.adopt && sql->edge.sql != NULL) {
        const PGresult *edge = db_txn_result(txn, batch->result - 1);
        batch->claim.edge = db_is_null(edge, 0, 0) ? BATCH_FROM_START : db_get_int(edge, 0, 0);
        batch->claim.cut = db_get_int(edge, 0, 1) >= batch->query.piece;
    }
    read_rows(batch, db_txn_result(txn, batch->result));
    batch->claim.full = (int64_t)batch->count >= batch->query.rows;
}

// Killed between the claim's commit and the publish: the claim expires, and another relay, or the
// next process, adopts it. (test_outbox_crash.py)
static void on_claimed(void *ctx, DbTxn *txn, const Error *err)
{
    Batch *batch = ctx;
    if (err == NULL) {
        read_claim(batch, txn);
    }
    if (batch->count == 0) {
        batch->handlers.claimed(batch->ctx, &batch->claim, err);
        batch_free(batch);
        return;
    }
    CRASH_POINT("outbox.claimed");
    uv_timer_init(db_pool_loop(batch->context->pool), &batch->timer);
    batch->timer.data = batch;
    uv_timer_init(db_pool_loop(batch->context->pool), &batch->renew_timer);
    batch->renew_timer.data = batch;
    batch->handlers.claimed(batch->ctx, &batch->claim, NULL);
    start_work(batch);
}

void batch_start(
    BatchContext *context, const BatchQuery *query, const BatchHandlers *handlers, void *ctx)
{
    Batch *batch = xcalloc(1, sizeof(*batch));
    batch->context = context;
    batch->handlers = *handlers;
    batch->ctx = ctx;
    batch->query = *query;
    batch->retry_ms = RETRY_MIN_MS;
    batch->arena = arena_new(256 * 1024);
    batch->claim_id = arena_str(batch->arena, str_from(query->claim_id));
    batch->query.claim_id = batch->claim_id.ptr;
    DbTxn *txn = db_txn_new(context->pool);
    batch->result = claim_write(context, &batch->query, txn);
    batch->asked_at_us = clock_mono_us();
    db_txn_submit(txn, on_claimed, batch);
}
