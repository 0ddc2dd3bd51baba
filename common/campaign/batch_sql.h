// SPDX-License-Identifier: Apache-2.0
// The statements about batches, and a batch as its row.
#pragma once

#include "common/db/db.h"
#include "common/model/batch.h"
#include "common/model/enums.h"

enum { BATCH_MEMBERS_MAX = 10000000 };

// Slices live in the arena they were read into.
typedef struct BatchRow {
    Str id;
    Str tenant;
    Str name;
    Category category;
    Channel channel;
    Priority priority;
    Str template_key;
    Str template_version;
    Str locale;
    Str variables;      // sealed
    Str consent_source; // of members that bring none
    int64_t consent_at_us;
    int64_t scheduled_for_us;
    int64_t rate_per_s;
    int64_t step;
    BatchStatus status;
    bool paused;
    Str reason;
    int64_t total;
    int64_t broken;
    int64_t chunks;
    int64_t next_chunk;
    int64_t next_offset;
    int64_t accepted;
    Str created_by;
    int64_t created_at_us;
    int64_t started_at_us;
    int64_t ended_at_us;
    Str create_hash;
    Str query;        // whom it is for (member_choice.h); empty: its members are uploaded
    Str chosen_after; // the last recipient that was looked at
    bool chosen;      // all were
} BatchRow;

// Each adds one statement whose result is rows of batches, to be read with batch_sql_read. The
// caller names the tenant (db_txn_tenant) in the same transaction; the claim is across tenants.
void batch_sql_get(DbTxn *txn, Str id);
void batch_sql_list(DbTxn *txn, Str tenant, Str status, Str before, int32_t limit);
void batch_sql_claim(DbTxn *txn, Str holder, int64_t lease_ms, int32_t at_most);
bool batch_sql_read(const PGresult *res, int row, Arena *arena, BatchRow *ret, Error *err);

// Makes a draft unless `create_key` made one before; then gives the row of whichever it is (two
// statements: the second's result is the row).
void batch_sql_create(DbTxn *txn, const BatchRow *row, Str create_key);

// What happened: 'added', 'repeated', 'other_body', 'not_draft', 'full' or 'missing'; the members
// that are in it now; its status.
typedef struct BatchPart {
    Str batch_id;
    int64_t part;
    Str hash;
    int64_t broken;
    const int32_t *counts;
    const Str *blobs;
    size_t chunks;
} BatchPart;
void batch_sql_add_part(DbTxn *txn, const BatchPart *part);

// Moves from the state it was read in; no row: it is in another one by now. Cancelling drops what
// is stored of the members.
void batch_sql_move(DbTxn *txn, Str id, BatchState from, BatchState to, int64_t scheduled_for_us);
void batch_sql_drop_members(DbTxn *txn, Str id); // of a batch that is over

// Totals: rows of status and count.
void batch_sql_totals(DbTxn *txn, Str tenant, Str id);

// ---- the runner's: only while `holder` holds it; no row: it does not ----

// The chunk: part, ordinal, first_index, started_at, data. No row also when it is paused or not
// running.
void batch_sql_load_chunk(DbTxn *txn, Str id, Str holder, int64_t chunk);

typedef struct BatchMove {
    Str id;
    Str holder;
    int64_t chunk, offset;           // the checkpoint as it is
    int64_t next_chunk, next_offset; // and as it will be
    int64_t members;                 // accepted by that
    bool done;                       // these were the last
    int64_t lease_ms;
} BatchMove;
// Moves the checkpoint, renews the lease, drops a chunk that is done; gives status and paused.
void batch_sql_checkpoint(DbTxn *txn, const BatchMove *move);
void batch_sql_renew(DbTxn *txn, Str id, Str holder, int64_t lease_ms); // gives status and paused
void batch_sql_release(DbTxn *txn, Str id, Str holder);
void batch_sql_fail(DbTxn *txn, Str id, Str holder, Str reason);
