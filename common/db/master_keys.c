// SPDX-License-Identifier: Apache-2.0
#include "common/db/master_keys.h"

#include <string.h>

#include "common/base/cleanup.h"
#include "common/codec/hash.h"
#include "common/codec/seal.h"
#include "common/db/errors.h"

DEFINE_CLEANUP(free_result, PGresult *, PQclear)

// In the order in which they came.
static const DbStatement READ = {
    "master_keys_read", "SELECT kind, check_value, retired_at IS NOT NULL FROM keys.master_keys "
                        "ORDER BY registered_at, kind DESC, key_id"};

static bool take_rows(const PGresult *rows, KeyRegister *ret, Error *err)
{
    ret->count = 0;
    for (int i = 0; i < db_rows(rows); i++) {
        KeyInfo info = {.kind = KEY_MASTER};
        Str check = db_get_text(rows, i, 1);
        if (!key_kind_from_name(db_get_text(rows, i, 0), &info.kind) ||
            check.len != KEY_CHECK_LEN) {
            return error_set(
                err, ERROR_CONFIG, "keys.master_keys holds a row that this version does not know");
        }
        memcpy(info.check, check.ptr, KEY_CHECK_LEN);
        if (!key_register_add(ret, &info, db_get_int(rows, i, 2) != 0, err)) {
            return false;
        }
    }
    return true;
}

// ---- from the loop ----

typedef struct Reading {
    MasterKeysRead done;
    void *ctx;
} Reading;

static void on_db_rows(void *ctx, DbTxn *txn, const Error *err)
{
    const Reading *reading = ctx;
    KeyRegister keys;
    Error wrong = {0};
    if (err == NULL && take_rows(db_txn_result(txn, 0), &keys, &wrong)) {
        reading->done(reading->ctx, &keys, NULL);
    } else {
        reading->done(reading->ctx, NULL, err != NULL ? err : &wrong);
    }
}

void master_keys_read(DbPool *pool, MasterKeysRead done, void *ctx)
{
    DbTxn *txn = db_txn_new(pool);
    Reading *reading = arena_alloc(db_txn_arena(txn), sizeof *reading);
    *reading = (Reading){done, ctx};
    (void)db_txn_add(txn, &READ, NULL);
    db_txn_submit(txn, on_db_rows, reading);
}

// ---- blocking ----

typedef struct Arguments {
    const char *values[4];
    int lengths[4];
    int count;
} Arguments;

static void add_bytes(Arguments *a, Str value)
{
    a->values[a->count] = value.ptr;
    a->lengths[a->count++] = (int)value.len;
}

// Everything in binary. NULL: it failed.
static PGresult *ask(PGconn *pg, const char *sql, const Arguments *a, Error *err)
{
    static const int BINARY[4] = {1, 1, 1, 1};
    PGresult *res = PQexecParams(
        pg, sql, a != NULL ? a->count : 0, NULL, a != NULL ? a->values : NULL,
        a != NULL ? a->lengths : NULL, BINARY, 1);
    ExecStatusType status = PQresultStatus(res);
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
        (void)db_error_result(res, "keys.master_keys", err);
        PQclear(res);
        return NULL;
    }
    return res;
}

bool master_keys_load(PGconn *pg, KeyRegister *ret, Error *err)
{
    CLEANUP(free_result) PGresult *rows = ask(pg, READ.sql, NULL, err);
    return rows != NULL && take_rows(rows, ret, err);
}

// ---- the first file ----

static bool opens_data_keys(PGconn *pg, MasterKey *master, Error *err)
{
    CLEANUP(free_result)
    PGresult *rows = ask(
        pg,
        "SELECT subject, generation, wrapped FROM keys.data_keys WHERE wrapped IS NOT NULL LIMIT 1",
        NULL, err);
    if (rows == NULL || db_rows(rows) == 0) {
        return rows != NULL;
    }
    DataKey *key = data_key_unwrap(
        master, (const uint8_t *)db_get_text(rows, 0, 0).ptr, (uint32_t)db_get_int(rows, 0, 1),
        db_get_text(rows, 0, 2), NULL);
    data_key_free(key);
    return key != NULL || error_set(
                              err, ERROR_CONFIG,
                              "its master key does not open the data keys of this database: it is "
                              "another installation's file");
}

// People's addresses are sealed under keys whose subjects are made with the hash key.
static bool finds_people(PGconn *pg, const MasterKey *master, Error *err)
{
    CLEANUP(free_result)
    PGresult *people =
        ask(pg, "SELECT tenant_id, recipient_id FROM people.addresses LIMIT 20", NULL, err);
    bool found = people != NULL && db_rows(people) == 0;
    for (int i = 0; people != NULL && i < db_rows(people) && !found; i++) {
        uint8_t subject[KEY_SUBJECT_LEN];
        key_subject(
            master_hash_key(master), DATA_KEY_ORDINARY, db_get_text(people, i, 0),
            db_get_text(people, i, 1), subject);
        Arguments a = {.count = 0};
        add_bytes(&a, str_of(subject, sizeof subject));
        CLEANUP(free_result)
        PGresult *keys =
            ask(pg, "SELECT 1 FROM keys.data_keys WHERE subject = $1::bytea LIMIT 1", &a, err);
        if (keys == NULL) {
            return false;
        }
        found = db_rows(keys) > 0;
    }
    return found ||
           (people != NULL && error_set(
                                  err, ERROR_CONFIG,
                                  "its hash key does not find the recipients of this database: "
                                  "it is another installation's file"));
}

// ---- registering ----

static bool store(PGconn *pg, const KeyInfo *info, Error *err)
{
    // What is current stays so; what was current before and is again becomes the latest.
    static const char SQL[] =
        "INSERT INTO keys.master_keys AS k (kind, key_id, check_value) VALUES ($1::text, "
        "$2::bytea, $3::bytea)"
        " ON CONFLICT (kind, key_id) DO UPDATE SET current_at = now() WHERE EXISTS (SELECT FROM "
        "keys.master_keys o"
        "  WHERE o.kind = k.kind AND o.key_id <> k.key_id AND o.current_at >= k.current_at)";
    Arguments a = {.count = 0};
    add_bytes(&a, str_from(key_kind_name(info->kind)));
    add_bytes(&a, str_of(info->check, KEY_ID_LEN));
    add_bytes(&a, str_of(info->check, KEY_CHECK_LEN));
    CLEANUP(free_result) PGresult *res = ask(pg, SQL, &a, err);
    return res != NULL;
}

static bool learn(PGconn *pg, MasterKey *master, KeyRegister *ret, Error *err)
{
    CLEANUP(free_result)
    PGresult *locked =
        ask(pg, "LOCK TABLE keys.master_keys IN SHARE ROW EXCLUSIVE MODE", NULL, err);
    if (locked == NULL || !master_keys_load(pg, ret, err)) {
        return false;
    }
    if (ret->count == 0 && (!opens_data_keys(pg, master, err) || !finds_people(pg, master, err))) {
        return false;
    }
    return key_register_learn(ret, master, err) &&
           store(pg, master_key_info(master, KEY_MASTER, 0), err) &&
           store(pg, master_key_info(master, KEY_HASH, 0), err);
}

bool master_keys_learn(PGconn *pg, MasterKey *master, KeyRegister *ret, Error *err)
{
    CLEANUP(free_result) PGresult *begin = ask(pg, "BEGIN", NULL, err);
    if (begin == NULL) {
        return false;
    }
    bool ok = learn(pg, master, ret, err);
    CLEANUP(free_result)
    PGresult *ended = ask(pg, ok ? "COMMIT" : "ROLLBACK", NULL, ok ? err : NULL);
    return ok && ended != NULL;
}
