// SPDX-License-Identifier: Apache-2.0
// Postgres from the loop: a pool of libpq connections in pipeline mode. The unit is a transaction
// (DbTxn): the tenants it may touch and its statements with binary parameters, sent in one go and
// answered in one go. One statement carries a whole batch through unnest(); nothing here makes a
// round trip per row. It is not a query builder and not for tools that may block (migrate.h is).
// Law: everything is called on the loop thread; callbacks are called from the loop, never from
// inside the call. A statement must not end the transaction.
#pragma once

#include <libpq-fe.h>
#include <uv.h>

#include "common/base/arena.h"
#include "common/base/error.h"

// ---- pool ----

typedef struct DbPool DbPool;

typedef struct DbPoolOptions {
    const char *url; // libpq connection string; the role in it cannot bypass row-level security
    const char *application_name; // "stentor-ingest"
    int connections;              // kept open; 1..32
    int statement_timeout_ms;     // 0: 10 s
    // Transactions waiting for a connection; 0: 1024. Beyond it a submit fails transient, and so
    // does a transaction that has waited for statement_timeout_ms.
    int queue_max;
} DbPoolOptions;

// Connects in the background, again and again with back-off (100 ms .. 5 s). Never fails for an
// absent server.
DbPool *db_pool_new(uv_loop_t *loop, const DbPoolOptions *options);
// Cancels what is waiting and what is under way (ERROR_CANCELLED) and closes. `on_closed` is called
// once all handles are closed; then the pool is gone. What on_done submits meanwhile is cancelled
// too: do not submit again on ERROR_CANCELLED.
void db_pool_close(DbPool *pool, void (*on_closed)(void *ctx), void *ctx);
bool db_pool_ready(const DbPool *pool); // at least one live connection
// Why no connection is live, or why Postgres took no write within the last seconds (its disk is
// full, it is read-only); NULL: nothing is known against it. For an operator's eyes only.
const char *db_pool_trouble(const DbPool *pool);
int db_pool_pending(const DbPool *pool); // submitted and not yet answered
typedef struct DbPoolStats {
    int busy;    // connections with a transaction under way
    int idle;    // connections without one
    int absent;  // connections that are being made again
    int waiting; // transactions that wait for a connection
} DbPoolStats;
DbPoolStats db_pool_stats(const DbPool *pool);
// From now on it gets the time of each transaction from its sending to its answer, errors too.
typedef void (*DbTimed)(void *ctx, double seconds);
void db_pool_on_timed(DbPool *pool, DbTimed on_timed, void *ctx);
uv_loop_t *db_pool_loop(const DbPool *pool);

// ---- transaction ----

enum {
    DB_STATEMENTS_MAX = 512, // of one transaction
    // Of values in arrays, with 4 bytes more for each: so much fits one transaction however it is
    // spread over them. An array that grows is copied, and its copies count as parameters too.
    DB_VALUES_MAX_BYTES = 16 * 1024 * 1024,
};

typedef struct DbTxn DbTxn;

// A statement is a static constant; it is prepared on a connection the first time it is used there.
typedef struct DbStatement {
    const char *name; // unique in the process
    const char *sql;  // $1::text[], $2::int8 ...: every parameter is cast. It is sent with the type
                      // of the function that gave it and cast by Postgres (db_i32 for $1::smallint,
                      // db_text for $1::interval)
} DbStatement;

// on_done gets err NULL after COMMIT. Otherwise nothing happened in the database (or, after a lost
// connection during COMMIT, perhaps everything: err kind is ERROR_TRANSIENT and its statements must
// be safe to repeat). Kinds: connection lost, timeout, deadlock, serialization: TRANSIENT. Bad
// data, constraint: PERMANENT. Missing table or right: CONFIG. Closing pool: CANCELLED. The
// transaction and its results are freed after on_done.
// One built wrongly (a tenant that is none, a number that does not fit; over 64 MiB of parameters,
// 32 statements, 64 parameters or 4,096 tenants) is never sent and gets its error the same way.
typedef void (*DbDone)(void *ctx, DbTxn *txn, const Error *err);

// Ends with db_txn_submit or db_txn_abandon; nothing is sent before.
DbTxn *db_txn_new(DbPool *pool);
Arena *db_txn_arena(DbTxn *txn); // lives as long as the transaction; parameters are built in it
// Sets app.tenant_id for this transaction: the tenants whose rows it may see and write. Call once
// per tenant (or per row: repeats cost nothing). A service that touches no tenant table calls it
// never.
void db_txn_tenant(DbTxn *txn, Str tenant);
// synchronous_commit = off for this transaction: only for what is rebuilt from a sequence stored in
// the same transaction, or what a later synchronous commit covers.
void db_txn_lazy_commit(DbTxn *txn);
// Statements for a copy of their schema: what folds into "people" folds into "people_rebuild" with
// the same statements. Every "people." of the text of those that are added from now on is
// "people_rebuild." then; NULL: no more.
typedef struct DbSchemaCopy DbSchemaCopy;
DbSchemaCopy *db_schema_copy_new(const char *schema, const char *copy); // both are copied
void db_schema_copy_free(DbSchemaCopy *copy); // after the pool is closed; NULL-safe
void db_txn_schema(DbTxn *txn, DbSchemaCopy *copy);
// Hands the transaction over; on_done comes from the loop, exactly once.
void db_txn_submit(DbTxn *txn, DbDone on_done, void *ctx);
void db_txn_abandon(DbTxn *txn); // frees one that was not submitted

// Result of the n-th db_txn_add, in binary format. Valid inside on_done; NULL before success.
const PGresult *db_txn_result(const DbTxn *txn, int index);

// ---- parameters: binary, in the order of $1, $2 ... ----

typedef struct DbParams DbParams;

// The n-th statement of the transaction (from 0); fill its parameters before submit.
// ret_index may be NULL.
DbParams *db_txn_add(DbTxn *txn, const DbStatement *statement, int *ret_index);
void db_text(DbParams *p, Str value);
void db_bytes(DbParams *p, Str value); // bytea
void db_i64(DbParams *p, int64_t value);
void db_i32(DbParams *p, int32_t value);
void db_bool(DbParams *p, bool value);
void db_time(DbParams *p, int64_t at_us); // timestamptz; 0 is NULL
void db_null(DbParams *p);

// Array parameters, built row by row: every column of one unnest() gets one push per row.
typedef enum DbType { DB_TEXT, DB_BYTES, DB_I64, DB_I32, DB_I16, DB_BOOL, DB_TIME } DbType;
typedef struct DbArray DbArray;
DbArray *db_array(DbParams *p, DbType element); // becomes the next parameter
void db_push_text(DbArray *a, Str value);       // DB_TEXT and DB_BYTES
void db_push_optional(DbArray *a, Str value);   // the same; empty is NULL
void db_push_int(DbArray *a, int64_t value);    // DB_I64, DB_I32, DB_I16, DB_BOOL
void db_push_time(DbArray *a, int64_t at_us);   // DB_TIME; 0 is NULL
void db_push_null(DbArray *a);

// ---- results ----

int db_rows(const PGresult *res);
bool db_is_null(const PGresult *res, int row, int column);
// Of NULL: empty, and 0.
Str db_get_text(const PGresult *res, int row, int column);    // text, bytea; points into the result
int64_t db_get_int(const PGresult *res, int row, int column); // int2, int4, int8, bool
// Microseconds since 1970; 0 when NULL.
int64_t db_get_time(const PGresult *res, int row, int column);
