// SPDX-License-Identifier: Apache-2.0
#include "services/archiver/archive/archive_audit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/auditlog/audit_append.h"
#include "common/base/arena.h"
#include "common/base/log.h"

enum { TICK_MS = 3000, FIRST_MS = 500 };

struct ArchiveAudit {
    const ArchiveChildOptions *options;
    AuditLog *log;
    uv_timer_t timer;
    Arena *arena; // of the row of the journal under way
    int64_t journal;
    const char **tenants;
    size_t tenant_count, next;
    AuditNote note;
    bool running, stopping;
    void (*on_stopped)(void *ctx);
    void *stopped_ctx;
};

// clang-format off
// The tenants of the first row that is not noted; one row without a tenant when the unit was empty. Clocks are 'platform's.
static const DbStatement find_statement = {
    .name = "archive_audit_find",
    .sql = "SELECT j.id, (extract(epoch FROM j.at) * 1000000)::int8, j.what, coalesce(j.unit, 'archive'),"
           " coalesce(t.tenant, CASE WHEN j.unit IS NULL THEN 'platform' ELSE '' END), coalesce(q.requested_by::text, ''), coalesce(j.detail->>'fault', '')"
           " FROM (SELECT n.* FROM archive.journal n, archive.installation i WHERE n.id > i.audited AND n.what IN ('unit restored', 'unit expired', 'clocks disagree')"
           "       ORDER BY n.id LIMIT 1) j"
           " LEFT JOIN (SELECT DISTINCT unit, tenant FROM archive.counts) t ON t.unit = j.unit"
           " LEFT JOIN archive.restores r ON r.unit = j.unit LEFT JOIN archive.requests q ON q.id = r.request ORDER BY t.tenant",
};

static const DbStatement noted_statement = {
    .name = "archive_audit_noted",
    .sql = "UPDATE archive.installation SET audited = $1::int8 WHERE audited < $1::int8",
};
// clang-format on

static void on_tick(uv_timer_t *timer);
static void append_next(ArchiveAudit *audit);

static void on_timer_closed(uv_handle_t *handle)
{
    ArchiveAudit *audit = handle->data;
    audit->on_stopped(audit->stopped_ctx);
}

static void finish(ArchiveAudit *audit, uint64_t wait_ms)
{
    audit->running = false;
    if (audit->stopping) {
        uv_close((uv_handle_t *)&audit->timer, on_timer_closed);
    } else {
        uv_timer_start(&audit->timer, on_tick, wait_ms, 0);
    }
}

static void on_noted(void *ctx, DbTxn *txn, const Error *err)
{
    (void)txn;
    finish(ctx, err != NULL ? TICK_MS : 0);
}

static void on_appended(void *ctx, const Error *err, const AuditHead *head)
{
    (void)head;
    ArchiveAudit *audit = ctx;
    if (err != NULL && err->kind != ERROR_CANCELLED) {
        LOG(LOG_WARN, "an audit entry of an archived unit was not stored; trying again",
            log_text("unit", audit->note.target), log_error(err));
    }
    if (err != NULL || audit->stopping) {
        finish(audit, TICK_MS);
        return;
    }
    audit->next++;
    append_next(audit);
}

static void append_next(ArchiveAudit *audit)
{
    if (audit->next < audit->tenant_count) {
        audit->note.tenant = audit->tenants[audit->next];
        audit_log_append(audit->log, &audit->note, on_appended, audit);
        return;
    }
    DbTxn *txn = db_txn_new(audit->options->pool);
    db_i64(db_txn_add(txn, &noted_statement, NULL), audit->journal);
    db_txn_submit(txn, on_noted, audit);
}

static void take_rows(ArchiveAudit *audit, const PGresult *rows)
{
    arena_reset(audit->arena);
    audit->journal = db_get_int(rows, 0, 0);
    audit->tenant_count = 0;
    audit->next = 0;
    audit->tenants = arena_array(audit->arena, (size_t)db_rows(rows), sizeof(char *));
    for (int i = 0; i < db_rows(rows); i++) {
        Str tenant = db_get_text(rows, i, 4);
        if (tenant.len > 0) {
            audit->tenants[audit->tenant_count++] = arena_cstr(audit->arena, tenant);
        }
    }
    Str what = db_get_text(rows, 0, 2);
    bool restored = str_eq(what, STR("unit restored"));
    bool refused = str_eq(what, STR("clocks disagree"));
    Str actor = db_get_text(rows, 0, 5);
    audit->note = (AuditNote){
        .kind = restored ? AUDIT_RESTORE : AUDIT_EXPIRY,
        .action = restored  ? "unit.restored"
                  : refused ? "expiry.refused"
                            : "unit.expired",
        .ground = refused ? arena_cstr(audit->arena, db_get_text(rows, 0, 6)) : NULL,
        .actor = restored && actor.len > 0 ? arena_cstr(audit->arena, actor) : "retention",
        .target = arena_cstr(audit->arena, db_get_text(rows, 0, 3)),
        .request_id = arena_printf(audit->arena, "journal-%" PRId64, audit->journal),
        .program = "stentor-archiver",
        .at_us = db_get_int(rows, 0, 1)};
}

static void on_found(void *ctx, DbTxn *txn, const Error *err)
{
    ArchiveAudit *audit = ctx;
    const PGresult *rows = err == NULL ? db_txn_result(txn, 0) : NULL;
    if (rows == NULL || db_rows(rows) == 0 || audit->stopping) {
        finish(audit, TICK_MS);
        return;
    }
    take_rows(audit, rows);
    append_next(audit);
}

static void on_tick(uv_timer_t *timer)
{
    ArchiveAudit *audit = timer->data;
    const ArchiveChildOptions *o = audit->options;
    if (!db_pool_ready(o->pool) || !bus_connected(o->bus) || !o->is_active(o->ctx)) {
        uv_timer_start(timer, on_tick, TICK_MS, 0);
        return;
    }
    DbTxn *txn = db_txn_new(o->pool);
    db_txn_add(txn, &find_statement, NULL);
    audit->running = true;
    db_txn_submit(txn, on_found, audit);
}

ArchiveAudit *archive_audit_new(const ArchiveChildOptions *options)
{
    ArchiveAudit *audit = xcalloc(1, sizeof *audit);
    audit->options = options;
    audit->log = audit_log_new(options->bus);
    audit->arena = arena_new(0);
    uv_timer_init(options->loop, &audit->timer);
    audit->timer.data = audit;
    uv_timer_start(&audit->timer, on_tick, FIRST_MS, 0);
    return audit;
}

void archive_audit_stop(ArchiveAudit *audit, void (*on_stopped)(void *ctx), void *ctx)
{
    audit->stopping = true;
    audit->on_stopped = on_stopped;
    audit->stopped_ctx = ctx;
    bool idle = !audit->running;
    audit_log_free(audit->log); // what waits there ends now
    audit->log = NULL;
    if (idle) {
        uv_close((uv_handle_t *)&audit->timer, on_timer_closed);
    }
}

void archive_audit_free(ArchiveAudit *audit)
{
    if (audit != NULL) {
        arena_free(audit->arena);
        free(audit);
    }
}
