// SPDX-License-Identifier: Apache-2.0
#include "services/ingest/batches/run_life.h"

#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/log.h"

void run_drop_chunk(Run *run)
{
    arena_free(run->chunk);
    run->chunk = NULL;
}

void run_free(Run *run)
{
    run_drop_chunk(run);
    arena_free(run->step);
    json_decref(run->variables);
    arena_free(run->arena);
    free(run);
}

void runs_sweep(BatchRunner *r)
{
    Run **at = &r->runs;
    while (*at != NULL) {
        Run *run = *at;
        if (run->over && !run->in_air) {
            *at = run->next;
            run_free(run);
            r->run_count--;
        } else {
            at = &run->next;
        }
    }
    metric_set(r->running, r->run_count);
}

void run_wait_ms(Run *run, int64_t ms)
{
    run->wait_until_us = clock_mono_us() + ms * 1000;
}

DbTxn *run_begin(const Run *run)
{
    DbTxn *txn = db_txn_new(run->runner->options.pool);
    db_txn_tenant(txn, run->row.tenant);
    return txn;
}

Str run_holder(const Run *run)
{
    return str_from(run->runner->options.holder);
}

static void on_db_ended(void *ctx, DbTxn *txn, const Error *err)
{
    Run *run = ctx;
    (void)txn;
    (void)err; // the lease ends by itself
    run->in_air = false;
    run->over = true;
}

void run_release(Run *run)
{
    DbTxn *txn = run_begin(run);
    batch_sql_release(txn, run->row.id, run_holder(run));
    run->in_air = true;
    db_txn_submit(txn, on_db_ended, run);
}

void run_fail(Run *run, const char *reason)
{
    LOG(LOG_WARN, "batch has failed", log_str("tenant", run->row.tenant),
        log_str("batch", run->row.id), log_text("reason", reason));
    DbTxn *txn = run_begin(run);
    batch_sql_fail(txn, run->row.id, run_holder(run), str_from(reason));
    batch_sql_drop_members(txn, run->row.id);
    run->in_air = true;
    db_txn_submit(txn, on_db_ended, run);
}

bool run_tenant_sends(Run *run)
{
    TenantStanding standing = catalog_standing(run->runner->options.catalog, run->row.tenant);
    if (standing == STANDING_DELETING) {
        run_fail(run, "the tenant is being deleted");
    } else if (standing != STANDING_ACTIVE) {
        run_wait_ms(run, SUSPENDED_MS);
    }
    return standing == STANDING_ACTIVE;
}

bool run_went_through(Run *run, const Error *err)
{
    run->in_air = false;
    if (err == NULL) {
        return true;
    }
    if (err->kind == ERROR_CANCELLED) {
        run->over = true;
    } else if (err->kind != ERROR_TRANSIENT) {
        LOG(LOG_ERROR, "batch is paused by a failure, it goes on by itself",
            log_str("batch", run->row.id), log_error(err));
    }
    run_wait_ms(run, TROUBLE_MS);
    return false;
}

bool run_may_go_on(Run *run, const PGresult *res)
{
    BatchStatus status = BATCH_NONE;
    if (db_rows(res) == 0 || !batch_status_from_name(db_get_text(res, 0, 0), &status)) {
        LOG(LOG_INFO, "batch goes on in another process", log_str("batch", run->row.id));
        return false;
    }
    run->row.status = status;
    run->row.paused = db_get_int(res, 0, 1) != 0;
    run->renew_at_us = clock_mono_us() + run->runner->options.lease_ms * 1000 / RENEWALS;
    return status == BATCH_RUNNING && !run->row.paused;
}
