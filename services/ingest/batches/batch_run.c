// SPDX-License-Identifier: Apache-2.0
#include "services/ingest/batches/batch_run.h"

#include <assert.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/crash.h"
#include "common/base/log.h"
#include "common/campaign/batch_chunk.h"
#include "common/campaign/batch_sql.h"
#include "common/json/json_read.h"
#include "common/json/json_write.h"
#include "common/model/rules/pace.h"
#include "services/ingest/batches/run_choose.h"
#include "services/ingest/batches/run_life.h"

#define SCOPE STR("batch")

// ---- the checkpoint ----

static void on_db_checkpoint(void *ctx, DbTxn *txn, const Error *err)
{
    Run *run = ctx;
    if (!run_went_through(run, err)) {
        if (!run->over) {
            run_release(
                run); // perhaps it moved, perhaps not: who claims it next reads where it stands
        }
        return;
    }
    CRASH_POINT("batch.moved");
    if (!run_may_go_on(run, db_txn_result(txn, 0))) {
        if (batch_is_over(run->row.status)) {
            LOG(LOG_INFO, "batch has ended", log_str("tenant", run->row.tenant),
                log_str("batch", run->row.id),
                log_text("status", batch_status_name(run->row.status)));
        }
        run_release(run);
        return;
    }
    run_advance(run);
}

static void save_checkpoint(Run *run)
{
    BatchRow *row = &run->row;
    int64_t members = (int64_t)run->submission.count;
    BatchMove move = {
        .id = row->id,
        .holder = run_holder(run),
        .chunk = row->next_chunk,
        .offset = row->next_offset,
        .next_chunk = row->next_chunk,
        .next_offset = row->next_offset + members,
        .members = members,
        .lease_ms = run->runner->options.lease_ms,
    };
    if (move.next_offset >= (int64_t)run->count) {
        move.next_chunk++;
        move.next_offset = 0;
        run_drop_chunk(run);
    }
    move.done = move.next_chunk >= row->chunks;
    DbTxn *txn = run_begin(run);
    batch_sql_checkpoint(txn, &move);
    row->next_chunk = move.next_chunk;
    row->next_offset = move.next_offset;
    run->in_air = true;
    db_txn_submit(txn, on_db_checkpoint, run);
}

// ---- a step ----

static void on_accept_done(void *ctx, const AcceptResult *result)
{
    Run *run = ctx;
    size_t count = run->submission.count;
    run->in_air = false;
    run->runner->waiting -= count;
    if (result->verdict == ACCEPT_UNAVAILABLE) {
        pace_give_back(&run->pace, (int64_t)count);
        run_wait_ms(run, TROUBLE_MS);
        return;
    }
    // Replayed: a process that died had it accepted and did not come to the checkpoint.
    metric_add(run->runner->accepted, result->verdict == ACCEPT_STORED ? (double)count : 0);
    CRASH_POINT("batch.accepted");
    save_checkpoint(run);
}

// The member's variables over the batch's own.
static Str merge_variables(Run *run, Str own)
{
    if (run->variables == NULL) {
        return own.len == 0 ? own : arena_str(run->step, own);
    }
    json_t *merged = own.len == 0 ? json_object() : json_read(own, 0, NULL);
    if (merged == NULL) {
        return arena_str(run->step, own); // the renderer fails this notification, with the reason
    }
    json_object_update_missing(merged, run->variables);
    Str text = json_text(merged, JSON_DECIMALS, run->step);
    json_decref(merged);
    return text;
}

static Request request_of(Run *run, size_t offset)
{
    const BatchRow *row = &run->row;
    const Member *member = &run->members[offset];
    bool own = member->consent_source.len > 0;
    char *id = arena_alloc(run->step, ID_SIZE);
    batch_notification_id(row->id, run->first_index + (int64_t)offset, run->begun_at_us, id);
    return (Request){
        .to = member->to,
        .to_name = member->name,
        .channel = row->channel,
        .category = row->category,
        .priority = row->priority,
        .template_key = row->template_key,
        .template_version = row->template_version,
        .locale = member->locale.len > 0 ? member->locale : row->locale,
        .variables = merge_variables(run, member->variables),
        .recipient_id = member->recipient_id,
        .consent_source = own ? member->consent_source : row->consent_source,
        .consent_at_us = own ? member->consent_at_us : row->consent_at_us,
        .given_id = id,
        .batch_id = row->id,
    };
}

// Key and hash depend on the members' place alone: the steps of a chunk are always
// cut at the same places.
static void build_step(Run *run, size_t count)
{
    arena_free(run->step);
    run->step = arena_new(0);
    Request *requests = arena_array(run->step, count, sizeof *requests);
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        requests[i] = request_of(run, (size_t)run->row.next_offset + i);
        bytes += requests[i].to.len + requests[i].to_name.len + requests[i].variables.len;
    }
    char *key = arena_printf(
        run->step, STR_FMT "/%" PRId64 "/%" PRId64, STR_ARG(run->row.id), run->row.next_chunk,
        run->row.next_offset);
    run->submission = (Submission){
        .tenant = run->row.tenant,
        .scope = SCOPE,
        .key = str_from(key),
        .requests = requests,
        .count = count,
        .bytes = bytes,
        .done = on_accept_done,
        .ctx = run,
    };
    sha256(run->submission.key, run->submission.body_hash);
}

static void submit_step(Run *run, size_t count)
{
    build_step(run, count);
    Error err = {0};
    run->in_air = true;
    run->runner->waiting += count;
    if (!accept_submit(run->runner->options.accept, &run->submission, run->step, &err)) {
        run->in_air = false;
        run->runner->waiting -= count;
        pace_give_back(&run->pace, (int64_t)count);
        run_wait_ms(run, ROOM_MS);
    }
}

// ---- a chunk ----

static bool unpack_chunk(Run *run, const PGresult *res, Error *err)
{
    ChunkPlace place = {
        .tenant = run->row.tenant,
        .batch_id = run->row.id,
        .part = db_get_int(res, 0, 0),
        .ordinal = db_get_int(res, 0, 1),
    };
    run->first_index = db_get_int(res, 0, 2);
    run->begun_at_us = db_get_time(res, 0, 3);
    DataKey *key = data_key_for_tenant(run->runner->options.master, run->row.tenant);
    bool ok = chunk_unpack(
        key, &place, db_get_text(res, 0, 4), run->chunk, &run->members, &run->count, err);
    data_key_free(key);
    return ok &&
           (run->row.next_offset < (int64_t)run->count ||
            error_set(
                err, ERROR_PERMANENT, "the checkpoint is behind the end of its chunk of members"));
}

static void on_db_chunk(void *ctx, DbTxn *txn, const Error *err)
{
    Run *run = ctx;
    if (!run_went_through(run, err)) {
        return;
    }
    const PGresult *res = db_txn_result(txn, 0);
    if (db_rows(res) == 0) {
        run_release(run); // paused, cancelled or taken over meanwhile
        return;
    }
    Error broken = {0};
    run->chunk = arena_new(0);
    if (!unpack_chunk(run, res, &broken)) {
        run_fail(run, broken.text);
        return;
    }
    run_advance(run);
}

// ---- what is next ----

static void on_db_renewed(void *ctx, DbTxn *txn, const Error *err)
{
    Run *run = ctx;
    if (run_went_through(run, err) && !run_may_go_on(run, db_txn_result(txn, 0))) {
        run_release(run);
    }
}

// false: it waits.
static bool has_room(Run *run, size_t count)
{
    const BatchRunner *r = run->runner;
    if (!run_tenant_sends(run)) {
        return false;
    }
    bool bus_has = bus_connected(r->options.bus) && bus_pending(r->options.bus) < BATCH_BUS_ROOM;
    if (!bus_has || r->waiting + count > BATCH_ROOM) {
        run_wait_ms(run, ROOM_MS);
        return false;
    }
    int64_t wait_us = 0;
    int64_t now_us = clock_mono_us();
    if (!pace_take(&run->pace, (int64_t)count, now_us, &wait_us)) {
        run->wait_until_us = now_us + wait_us;
        return false;
    }
    return true;
}

static bool template_is_there(Run *run)
{
    Request request = {
        .channel = run->row.channel,
        .category = run->row.category,
        .template_key = run->row.template_key,
        .template_version = run->row.template_version,
    };
    FieldError err = {.field = ""};
    if (!catalog_freeze(
            run->runner->options.catalog, run->row.tenant, &request, run->arena, &err)) {
        run_fail(run, err.text);
        return false;
    }
    return true;
}

void run_advance(Run *run)
{
    const BatchRunner *r = run->runner;
    if (run->in_air || run->over) {
        return;
    }
    if (r->stopping) {
        run_release(run);
        return;
    }
    int64_t now_us = clock_mono_us();
    if (now_us >= run->renew_at_us) {
        DbTxn *txn = run_begin(run);
        batch_sql_renew(txn, run->row.id, run_holder(run), r->options.lease_ms);
        run->in_air = true;
        db_txn_submit(txn, on_db_renewed, run);
        return;
    }
    if (now_us < run->wait_until_us || r->options.unready(r->options.unready_ctx) != NULL) {
        return;
    }
    if (run->chunk == NULL && run_chooses(run)) {
        if (template_is_there(run)) {
            run_choose(run);
        }
        return;
    }
    if (run->chunk == NULL) {
        if (template_is_there(run)) {
            DbTxn *txn = run_begin(run);
            batch_sql_load_chunk(txn, run->row.id, run_holder(run), run->row.next_chunk);
            run->in_air = true;
            db_txn_submit(txn, on_db_chunk, run);
        }
        return;
    }
    size_t left = run->count - (size_t)run->row.next_offset;
    size_t count = left < (size_t)run->row.step ? left : (size_t)run->row.step;
    if (has_room(run, count)) {
        submit_step(run, count);
    }
}

// ---- claiming ----

static bool read_variables(Run *run, Error *err)
{
    if (run->row.variables.len == 0) {
        return true;
    }
    Str plain = STR_EMPTY;
    DataKey *key = data_key_for_tenant(run->runner->options.master, run->row.tenant);
    bool ok = chunk_unseal_text(
        key, run->row.tenant, run->row.id, "variables", run->row.variables, run->arena, &plain,
        err);
    data_key_free(key);
    run->variables = ok ? json_read(plain, 0, NULL) : NULL;
    return ok && (run->variables != NULL ||
                  error_set(err, ERROR_PERMANENT, "the batch's variables are not JSON"));
}

static void take_run(BatchRunner *r, const PGresult *res, int i)
{
    Run *run = xcalloc(1, sizeof *run);
    run->runner = r;
    run->arena = arena_new(0);
    Error err = {0};
    if (!batch_sql_read(res, i, run->arena, &run->row, &err)) {
        LOG(LOG_ERROR, "row of ingest.batches cannot be read, the batch does not run",
            log_error(&err));
        run_free(run);
        return;
    }
    int64_t now_us = clock_mono_us();
    // Two steps' worth: what a commit takes is not lost from the pace.
    pace_init(&run->pace, run->row.rate_per_s, 2 * run->row.step, now_us);
    run->renew_at_us = now_us + r->options.lease_ms * 1000 / RENEWALS;
    run->next = r->runs;
    r->runs = run;
    r->run_count++;
    LOG(LOG_INFO, "batch runs in this process", log_str("tenant", run->row.tenant),
        log_str("batch", run->row.id), log_int("accepted", run->row.accepted),
        log_int("of", run->row.total));
    if (!read_variables(run, &err)) {
        run_fail(run, err.text);
    }
}

static void on_db_claimed(void *ctx, DbTxn *txn, const Error *err)
{
    BatchRunner *r = ctx;
    r->looking = false;
    if (err != NULL) {
        if (err->kind != ERROR_TRANSIENT && err->kind != ERROR_CANCELLED) {
            LOG(LOG_ERROR, "batches cannot be claimed, none is started", log_error(err));
        }
        return;
    }
    const PGresult *res = db_txn_result(txn, 0);
    for (int i = 0; i < db_rows(res); i++) {
        take_run(r, res, i);
    }
}

static void look(BatchRunner *r)
{
    int64_t now_us = clock_mono_us();
    bool wanted = !r->stopping && !r->looking && now_us >= r->look_at_us &&
                  r->run_count < BATCH_RUNS_MAX && db_pool_ready(r->options.pool) &&
                  r->options.unready(r->options.unready_ctx) == NULL;
    if (!wanted) {
        return;
    }
    r->look_at_us = now_us + (r->run_count > 0 ? LOOK_MS : LOOK_IDLE_MS) * INT64_C(1000);
    r->looking = true;
    DbTxn *txn = db_txn_new(r->options.pool);
    batch_sql_claim(
        txn, str_from(r->options.holder), r->options.lease_ms, BATCH_RUNS_MAX - r->run_count);
    db_txn_submit(txn, on_db_claimed, r);
}

// ---- life ----

static void turn(BatchRunner *r)
{
    for (Run *run = r->runs; run != NULL; run = run->next) {
        run_advance(run);
    }
    runs_sweep(r);
}

void batch_runner_tick(BatchRunner *r)
{
    look(r);
    turn(r);
}

void batch_runner_wake(BatchRunner *r)
{
    r->look_at_us = 0;
    look(r);
}

void batch_runner_stop(BatchRunner *r)
{
    r->stopping = true;
    turn(r);
}

bool batch_runner_idle(const BatchRunner *r)
{
    return !r->looking && r->run_count == 0;
}

BatchRunner *batch_runner_new(const BatchRunnerOptions *options)
{
    BatchRunner *r = xcalloc(1, sizeof *r);
    r->options = *options;
    r->accepted = metrics_counter(
        options->metrics, "stentor_ingest_batch_accepted_total", "",
        "Members of batches accepted as notifications");
    r->running = metrics_gauge(
        options->metrics, "stentor_ingest_batches_running", "", "Batches that this process runs");
    return r;
}

void batch_runner_free(BatchRunner *r)
{
    if (r != NULL) {
        assert(batch_runner_idle(r));
        free(r);
    }
}
