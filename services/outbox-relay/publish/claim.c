// SPDX-License-Identifier: Apache-2.0
#include "services/outbox-relay/publish/claim.h"

#include <stdlib.h>

static void add_position(DbParams *p, int64_t position)
{
    if (position == BATCH_FROM_START) {
        db_null(p);
    } else {
        db_i64(p, position);
    }
}

// Returns the number of statements so far.
static int add_edge(const BatchContext *context, const BatchQuery *query, DbTxn *txn)
{
    int count = 1;
    db_txn_add(txn, &context->sql->lock, NULL);
    if (!context->begin_done && context->sql->begin.sql != NULL) {
        db_txn_add(txn, &context->sql->begin, NULL);
        count++;
    }
    if (context->sql->edge.sql != NULL) {
        DbParams *edge = db_txn_add(txn, &context->sql->edge, NULL);
        add_position(edge, query->after_position);
        db_i64(edge, query->piece);
        count++;
    }
    return count;
}

static int write_adopt(const BatchContext *context, const BatchQuery *query, DbTxn *txn)
{
    db_txn_add(txn, &context->sql->lock, NULL);
    DbParams *adopt = db_txn_add(txn, &context->sql->adopt, NULL);
    db_text(adopt, str_from(query->claim_id));
    db_text(adopt, str_from(context->relay));
    db_i64(adopt, context->lease_ms);
    return 1;
}

int claim_write(const BatchContext *context, const BatchQuery *query, DbTxn *txn)
{
    if (query->adopt) {
        return write_adopt(context, query, txn);
    }
    int result = add_edge(context, query, txn);
    DbParams *claim = db_txn_add(txn, &context->sql->claim, NULL);
    db_text(claim, str_from(query->claim_id));
    db_text(claim, str_from(context->relay));
    db_i64(claim, context->lease_ms);
    db_i32(claim, (int32_t)query->rows);
    add_position(claim, query->after_position);
    return result;
}

// ---- a row that cannot be claimed ----

typedef struct Aside {
    void (*done)(void *ctx, Str key, const Error *err);
    void *ctx;
    int result;
} Aside;

static void on_aside(void *ctx, DbTxn *txn, const Error *err)
{
    Aside aside = *(Aside *)ctx;
    free(ctx);
    const PGresult *res = err == NULL ? db_txn_result(txn, aside.result) : NULL;
    aside.done(
        aside.ctx, res == NULL || db_rows(res) == 0 ? STR_EMPTY : db_get_text(res, 0, 0), err);
}

void claim_put_aside(
    BatchContext *context, const BatchQuery *query, const char *reason,
    void (*done)(void *ctx, Str key, const Error *err), void *ctx)
{
    Aside *aside = xcalloc(1, sizeof(*aside));
    DbTxn *txn = db_txn_new(context->pool);
    *aside = (Aside){.done = done, .ctx = ctx, .result = add_edge(context, query, txn)};
    DbParams *p = db_txn_add(txn, &context->sql->aside, NULL);
    db_text(p, str_from(query->claim_id));
    db_text(p, str_from(reason));
    db_null(p);
    db_i32(p, 1);
    add_position(p, query->after_position);
    db_txn_submit(txn, on_aside, aside);
}
