// SPDX-License-Identifier: Apache-2.0
// The inside of a transaction: what txn.c and params.c build and connection.c sends. Private to
// common/db. Law: a transaction that was built wrongly (a bad tenant, a number that does not fit,
// too much data) keeps its first error, is never sent, and tells it through on_done.
#pragma once

#include "common/db/db.h"

enum {
    DB_PARAMS_MAX = 64,                  // of one statement
    DB_TENANTS_MAX = 4096,               // named by one transaction
    DB_TXN_MAX_BYTES = 64 * 1024 * 1024, // memory of its parameters
    DB_TENANT_LEN_MAX = 32,
};

typedef struct DbParam {
    const char *value; // NULL: null
    int length;
    Oid type;       // 0: taken from the cast
    DbArray *array; // not NULL: value and length are set when the transaction is sealed
} DbParam;

struct DbParams {
    DbTxn *txn;
    const DbStatement *statement;
    int count;
    DbParam items[DB_PARAMS_MAX];
};

typedef struct DbTenants {
    Str *slots; // open addressing; an empty slot has ptr NULL
    size_t cap; // power of two, or 0
    size_t count;
    size_t bytes;
    Str last;
} DbTenants;

struct DbTxn {
    DbPool *pool; // NULL: sent on a connection of its own (lock.c)
    Arena *arena;
    DbTxn *next; // in the pool's queue, then in its list of answered ones
    size_t bytes;
    DbTenants tenants;
    Str named; // these, with commas between them, once it is sealed
    bool lazy;
    DbSchemaCopy *copy; // its statements are for it; NULL: for their own schema
    int count;
    int cap;
    DbParams **statements; // count of them, with room for cap; in the arena, as the results
    PGresult **results;
    Error error;
    bool answered; // and without an error: the results may be read
    DbDone on_done;
    void *ctx;
    uint64_t sent_ns;     // uv_hrtime() when it was sent
    uint64_t deadline_ms; // loop time until which it may wait for a connection
};

// Keeps the first error of a wrongly built transaction.
void db_txn_fail(DbTxn *txn, ErrorKind kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// Counts memory for parameters; false (and a failed transaction) past DB_TXN_MAX_BYTES.
bool db_txn_spend(DbTxn *txn, size_t bytes);
// Finishes arrays and the tenants' names; false when the transaction failed.
bool db_txn_seal(DbTxn *txn);
void db_params_seal(DbParams *p);
DbParams *db_params_new(DbTxn *txn, const DbStatement *statement);
// Stores the answer (takes nothing from err) and drops half a transaction's results.
void db_txn_answer(DbTxn *txn, const Error *err);
void db_txn_free(DbTxn *txn);
