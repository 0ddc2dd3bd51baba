// SPDX-License-Identifier: Apache-2.0
#include "common/db/epochs.h"

#include <string.h>

#include "common/base/cleanup.h"
#include "common/db/errors.h"

DEFINE_CLEANUP(free_result, PGresult *, PQclear)

static const DbStatement READ = {
    "epochs_read", "SELECT number, key_id, closed_at IS NULL, opened_at, emptied_at FROM "
                   "keys.epochs WHERE destroyed_at IS NULL ORDER BY number LIMIT 65"};

bool epochs_check(const EpochRows *epochs, const MasterKey *master, Error *err)
{
    for (size_t i = 0; i < epochs->count; i++) {
        const EpochRow *row = &epochs->rows[i];
        char id[KEY_ID_SIZE];
        key_id_print(row->id, id);
        if (row->emptied_us == 0 && master_epoch_find(master, row->id) == NULL) {
            return error_set(
                err, ERROR_CONFIG,
                "the epoch key %s (number %u) wraps data keys and is not in "
                "STENTOR_EPOCH_KEYS_DIR (HINT: name the folder that the other programs use, or put "
                "its copy back)",
                id, (unsigned)row->number);
        }
    }
    return true;
}

static bool take_rows(const PGresult *rows, EpochRows *ret, Error *err)
{
    ret->count = 0;
    for (int i = 0; i < db_rows(rows); i++) {
        Str id = db_get_text(rows, i, 1);
        if (ret->count == EPOCH_KEYS_MAX || id.len != KEY_ID_LEN) {
            return error_set(
                err, ERROR_CONFIG,
                "keys.epochs holds a row that this version does not know, or "
                "too many");
        }
        EpochRow *row = &ret->rows[ret->count++];
        *row = (EpochRow){
            .number = (uint32_t)db_get_int(rows, i, 0),
            .open = db_get_int(rows, i, 2) != 0,
            .opened_us = db_get_time(rows, i, 3),
            .emptied_us = db_is_null(rows, i, 4) ? 0 : db_get_time(rows, i, 4)};
        memcpy(row->id, id.ptr, KEY_ID_LEN);
    }
    return true;
}

typedef struct Reading {
    EpochsRead done;
    void *ctx;
} Reading;

static void on_db_rows(void *ctx, DbTxn *txn, const Error *err)
{
    const Reading *reading = ctx;
    EpochRows epochs;
    Error wrong = {0};
    if (err == NULL && take_rows(db_txn_result(txn, 0), &epochs, &wrong)) {
        reading->done(reading->ctx, &epochs, NULL);
    } else {
        reading->done(reading->ctx, NULL, err != NULL ? err : &wrong);
    }
}

void epochs_read(DbPool *pool, EpochsRead done, void *ctx)
{
    DbTxn *txn = db_txn_new(pool);
    Reading *reading = arena_alloc(db_txn_arena(txn), sizeof *reading);
    *reading = (Reading){done, ctx};
    (void)db_txn_add(txn, &READ, NULL);
    db_txn_submit(txn, on_db_rows, reading);
}

bool epochs_load(PGconn *pg, EpochRows *ret, Error *err)
{
    CLEANUP(free_result)
    PGresult *rows = PQexecParams(pg, READ.sql, 0, NULL, NULL, NULL, NULL, 1);
    if (PQresultStatus(rows) != PGRES_TUPLES_OK) {
        return db_error_result(rows, "keys.epochs", err);
    }
    return take_rows(rows, ret, err);
}

// ---- the gate ----

static const DbStatement READ_GATE = {"gate_read", "SELECT keys.gate_closed()"};

typedef struct Asking {
    GateRead done;
    void *ctx;
} Asking;

static void on_db_gate(void *ctx, DbTxn *txn, const Error *err)
{
    const Asking *asking = ctx;
    Str reason = STR_EMPTY;
    if (err == NULL && !db_is_null(db_txn_result(txn, 0), 0, 0)) {
        reason = db_get_text(db_txn_result(txn, 0), 0, 0);
    }
    asking->done(asking->ctx, reason, err);
}

void gate_read(DbPool *pool, GateRead done, void *ctx)
{
    DbTxn *txn = db_txn_new(pool);
    Asking *asking = arena_alloc(db_txn_arena(txn), sizeof *asking);
    *asking = (Asking){done, ctx};
    (void)db_txn_add(txn, &READ_GATE, NULL);
    db_txn_submit(txn, on_db_gate, asking);
}
