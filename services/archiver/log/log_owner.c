// SPDX-License-Identifier: Apache-2.0
#include "services/archiver/log/log_owner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/archive/owner.h"
#include "common/base/buf.h"

struct LogOwner {
    DbPool *pool;
    Storage *storage;
    OwnerRow row;
    Buf document;
    LogOwnerAnswer on_answer;
    void *ctx;
};

// clang-format off
static const DbStatement row_statement = {
    .name = "log_owner",
    .sql = "SELECT id::text, owner_epoch, coalesce(token::text, ''), coalesce(previous_token::text, ''),"
           " EXISTS (SELECT FROM archive.objects o WHERE o.state <> 'deleted') OR EXISTS (SELECT FROM archive.segments),"
           " (SELECT system_identifier FROM pg_control_system()) || '/' || (SELECT timeline_id FROM pg_control_checkpoint()) || '/'"
           " || (SELECT oid FROM pg_database WHERE datname = current_database()), coalesce(standing_still, ''),"
           " (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::int8::text "
           "FROM archive.installation"};
// clang-format on

LogOwner *log_owner_new(DbPool *pool, Storage *storage)
{
    LogOwner *owner = xcalloc(1, sizeof *owner);
    owner->pool = pool;
    owner->storage = storage;
    buf_init(&owner->document, OWNER_JSON_MAX);
    return owner;
}

void log_owner_free(LogOwner *owner)
{
    if (owner != NULL) {
        buf_done(&owner->document);
        free(owner);
    }
}

static void answer(LogOwner *owner, const Error *err)
{
    owner->on_answer(owner->ctx, err);
}

// ---- 2: the bucket ----

static void judge(LogOwner *owner, const OwnerMark *bucket)
{
    Error err = {0};
    OwnerVerdict verdict = owner_judge(&owner->row, bucket);
    if (verdict == OWNER_OURS && strcmp(bucket->server, owner->row.mark.server) != 0) {
        error_set(
            &err, ERROR_TRANSIENT,
            "the archiving process has not taken the bucket since this server was started");
        answer(owner, &err);
        return;
    }
    if (verdict == OWNER_OURS || verdict == OWNER_FREE) {
        answer(owner, NULL);
        return;
    }
    error_set(
        &err, ERROR_PERMANENT,
        "object storage is not this database's: of the installation '%s', epoch %lld",
        bucket != NULL ? bucket->installation : "none",
        bucket != NULL ? (long long)bucket->epoch : 0);
    answer(owner, &err);
}

static void finish_document(LogOwner *owner, StorageOutcome outcome, const Error *failure)
{
    Error err = {0};
    OwnerMark mark;
    if (outcome == STORAGE_FAILED) {
        answer(owner, failure);
    } else if (outcome == STORAGE_ABSENT) {
        judge(owner, NULL);
    } else if (owner_parse(buf_view(&owner->document), &mark, &err)) {
        judge(owner, &mark);
    } else {
        answer(owner, &err);
    }
}

static void on_document(
    void *ctx, StorageOutcome outcome, const StorageInfo *info, const Error *err)
{
    (void)info;
    finish_document(ctx, outcome, err);
}

static bool on_piece(void *ctx, const void *bytes, size_t len)
{
    LogOwner *owner = ctx;
    return buf_append(&owner->document, bytes, len);
}

// ---- 1: the row ----

static void take_text(const PGresult *rows, int column, char *out, size_t size)
{
    (void)str_to_c(db_get_text(rows, 0, column), out, size);
}

static void finish_row(LogOwner *owner, const PGresult *rows)
{
    OwnerMark *mark = &owner->row.mark;
    owner->row = (OwnerRow){.stored = db_get_int(rows, 0, 4) != 0};
    take_text(rows, 0, mark->installation, sizeof mark->installation);
    mark->epoch = db_get_int(rows, 0, 1);
    take_text(rows, 2, mark->token, sizeof mark->token);
    take_text(rows, 3, owner->row.previous_token, sizeof owner->row.previous_token);
    take_text(rows, 5, mark->database, sizeof mark->database);
    take_text(rows, 7, mark->server, sizeof mark->server);
    Str still = db_get_text(rows, 0, 6);
    if (still.len > 0) {
        Error err;
        error_set(&err, ERROR_PERMANENT, STR_FMT, STR_ARG(still));
        answer(owner, &err);
        return;
    }
    buf_clear(&owner->document);
    storage_get(owner->storage, STR(OWNER_KEY), 0, 0, on_piece, on_document, owner);
}

static void on_row(void *ctx, DbTxn *txn, const Error *err)
{
    LogOwner *owner = ctx;
    if (err != NULL) {
        answer(owner, err);
    } else {
        finish_row(owner, db_txn_result(txn, 0));
    }
}

void log_owner_ask(LogOwner *owner, LogOwnerAnswer on_answer, void *ctx)
{
    owner->on_answer = on_answer;
    owner->ctx = ctx;
    DbTxn *txn = db_txn_new(owner->pool);
    (void)db_txn_add(txn, &row_statement, NULL);
    db_txn_submit(txn, on_row, owner);
}
