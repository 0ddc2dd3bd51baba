// SPDX-License-Identifier: Apache-2.0
#include "services/ingest/accept/stored_answer.h"

#include "services/ingest/accept/accept_sql.h"

static const DbStatement FIND = {
    .name = "ingest_stored_answer",
    .sql = "SELECT response_status, response_body FROM ingest.idempotency_keys"
           " WHERE tenant_id = $1::text AND scope = $2::text AND idempotency_key = $3::text"
           " AND request_hash = $4::bytea AND created_at >= now() - interval '24 hours'",
};

static void on_found(void *ctx, DbTxn *txn, const Error *err)
{
    Submission *submission = ctx;
    AcceptResult result = {.verdict = ACCEPT_OTHER_BODY};
    const PGresult *rows = err == NULL ? db_txn_result(txn, 1) : NULL;
    if (err != NULL) {
        result.verdict = ACCEPT_UNAVAILABLE;
        result.error = *err;
    } else if (db_rows(rows) > 0) {
        result.verdict = ACCEPT_REPLAYED;
        result.status = (int)db_get_int(rows, 0, 0);
        result.answer = db_get_text(rows, 0, 1);
    }
    submission->done(submission->ctx, &result);
}

void stored_answer_find(DbPool *pool, Submission *submission)
{
    DbTxn *txn = db_txn_new(pool);
    db_txn_tenant(txn, submission->tenant);
    accept_sql_by_index(txn);
    DbParams *p = db_txn_add(txn, &FIND, NULL);
    db_text(p, submission->tenant);
    db_text(p, submission->scope);
    db_text(p, submission->key);
    db_bytes(p, str_of(submission->body_hash, SHA256_LEN));
    db_txn_submit(txn, on_found, submission);
}
