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

// Answers how many statements are there now.
static int add_edge(const BatchWorld *world, const BatchAsk *ask, DbTxn *txn)
{
    int count = 1;
    db_txn_add(txn, &world->sql->lock, NULL);
    if (!world->begun && world->sql->begin.sql != NULL) {
        db_txn_add(txn, &world->sql->begin, NULL);
        count++;
    }
    if (world->sql->edge.sql != NULL) {
        DbParams *edge = db_txn_add(txn, &world->sql->edge, NULL);
        add_position(edge, ask->after_position);
        db_i64(edge, ask->piece);
        count++;
    }
    return count;
}

static int write_adopt(const BatchWorld *world, const BatchAsk *ask, DbTxn *txn)
{
    db_txn_add(txn, &world->sql->lock, NULL);
    DbParams *adopt = db_txn_add(txn, &world->sql->adopt, NULL);
    db_text(adopt, str_from(ask->claim_id));
    db_text(adopt, str_from(world->relay));
    db_i64(adopt, world->lease_ms);
    return 1;
}

int claim_write(const BatchWorld *world, const BatchAsk *ask, DbTxn *txn)
{
    if (ask->adopt) {
        return write_adopt(world, ask, txn);
    }
    int result = add_edge(world, ask, txn);
    DbParams *claim = db_txn_add(txn, &world->sql->claim, NULL);
    db_text(claim, str_from(ask->claim_id));
    db_text(claim, str_from(world->relay));
    db_i64(claim, world->lease_ms);
    db_i32(claim, (int32_t)ask->rows);
    add_position(claim, ask->after_position);
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
    BatchWorld *world, const BatchAsk *ask, const char *reason,
    void (*done)(void *ctx, Str key, const Error *err), void *ctx)
{
    Aside *aside = xcalloc(1, sizeof(*aside));
    DbTxn *txn = db_txn_new(world->pool);
    *aside = (Aside){.done = done, .ctx = ctx, .result = add_edge(world, ask, txn)};
    DbParams *p = db_txn_add(txn, &world->sql->aside, NULL);
    db_text(p, str_from(ask->claim_id));
    db_text(p, str_from(reason));
    db_null(p);
    db_i32(p, 1);
    add_position(p, ask->after_position);
    db_txn_submit(txn, on_aside, aside);
}
