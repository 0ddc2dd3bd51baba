// SPDX-License-Identifier: Apache-2.0
// Many keys: read in one snapshot, copied into a new table with their new wrapped forms, and the
// tables swapped (migrations/keys/0005_key_work.sql). While Postgres copies one chunk this process
// wraps the next. Killed before the swap: the new table is dropped by the next turn, nothing has
// happened. The swap is one transaction.
#include <assert.h>
#include <string.h>
#include <time.h>

#include "common/base/crash.h"
#include "common/codec/hash.h"
#include "common/codec/seal.h"
#include "common/db/db.h"
#include "common/db/errors.h"
#include "common/keywork/internal.h"

enum {
    CHUNK = 4096,
    FEW = 1000,       // changes that the swap may carry over itself, while all others wait
    ROUNDS_MAX = 100, // of carrying over
    SWAP_TRIES = 600, // of 200 ms and a pause of 300 ms
    SWAP_PAUSE_MS = 300,
};

static const char FETCH[] = "FETCH 4096 FROM key_rows";
static const char COPY[] = "SELECT keys.copy_bulk($1::tid[], $2::bytea[])";

typedef struct Chunk {
    KeyworkArray places, fresh;
} Chunk;

// ---- the pipeline ----

static bool fail_pipeline(const Keywork *work, Error *err)
{
    return db_error_connection(work->pg, "Postgres", err);
}

static bool ask_ahead(Keywork *work, const char *sql, const Chunk *chunk, Error *err)
{
    const char *const values[] = {
        chunk != NULL ? chunk->places.bytes.ptr : NULL,
        chunk != NULL ? chunk->fresh.bytes.ptr : NULL};
    const int lengths[] = {
        chunk != NULL ? (int)chunk->places.bytes.len : 0,
        chunk != NULL ? (int)chunk->fresh.bytes.len : 0};
    static const int formats[] = {1, 1};
    return (PQsendQueryParams(
                work->pg, sql, chunk != NULL ? 2 : 0, NULL, values, lengths, formats, 1) == 1 &&
            PQsendFlushRequest(work->pg) == 1 && PQflush(work->pg) == 0) ||
           fail_pipeline(work, err);
}

// The answer of the oldest statement; NULL: it failed.
static PGresult *receive(Keywork *work, Error *err)
{
    PGresult *rows = PQgetResult(work->pg);
    ExecStatusType status = PQresultStatus(rows);
    if (rows == NULL) {
        (void)fail_pipeline(work, err);
        return NULL;
    }
    PQclear(PQgetResult(work->pg)); // NULL: the end of this statement's answers
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
        return rows;
    }
    (void)db_error_result(rows, "keys", err);
    PQclear(rows);
    return NULL;
}

// ---- wrapping ----

static void wrap_row(Keywork *work, const PGresult *rows, int row, Chunk *chunk, KeyworkReport *ret)
{
    uint8_t wrapped[WRAPPED_KEY_LEN];
    Str place = db_get_text(rows, row, 0);
    Str subject = db_get_text(rows, row, 1);
    bool wanted = !db_is_null(rows, row, 3);
    bool ok = wanted && subject.len == KEY_SUBJECT_LEN &&
              data_key_rewrap(
                  work->master, (const uint8_t *)subject.ptr, (uint32_t)db_get_int(rows, row, 2),
                  db_get_text(rows, row, 3), wrapped, &ret->failure);
    ret->wrapped += ok ? 1 : 0;
    ret->failed += wanted && !ok ? 1 : 0;
    keywork_array_push(&chunk->places, place.ptr, place.len);
    keywork_array_push(&chunk->fresh, ok ? wrapped : NULL, sizeof wrapped);
}

static bool take_copied(Keywork *work, int wanted, Error *err)
{
    CLEANUP(keywork_clear) PGresult *copied = receive(work, err);
    return copied != NULL &&
           (db_get_int(copied, 0, 0) == wanted ||
            error_set(err, ERROR_TRANSIENT, "rows of data keys were not found again"));
}

static bool wrap_chunk(
    Keywork *work, const PGresult *rows, Chunk *chunk, KeyworkReport *ret, Error *err)
{
    keywork_array_begin(&chunk->places, KEYWORK_TID);
    keywork_array_begin(&chunk->fresh, KEYWORK_BYTEA);
    for (int i = 0; i < db_rows(rows); i++) {
        wrap_row(work, rows, i, chunk, ret);
    }
    keywork_array_end(&chunk->places);
    keywork_array_end(&chunk->fresh);
    return ask_ahead(work, COPY, chunk, err);
}

// Answers come in the order: rows 1, rows 2, copied 1, rows 3, copied 2 ...
static bool copy_chunks(Keywork *work, Chunk *chunk, KeyworkReport *ret, Error *err)
{
    int before = 0; // rows of the chunk whose copy is not answered
    PGresult *rows = ask_ahead(work, FETCH, NULL, err) ? receive(work, err) : NULL;
    while (rows != NULL && db_rows(rows) > 0) {
        int count = db_rows(rows);
        bool ok = keywork_goes_on(work, err) && ask_ahead(work, FETCH, NULL, err) &&
                  wrap_chunk(work, rows, chunk, ret, err) &&
                  (before == 0 || take_copied(work, before, err));
        PQclear(rows);
        before = count;
        rows = ok ? receive(work, err) : NULL;
    }
    bool ended = rows != NULL;
    PQclear(rows);
    return ended && (before == 0 || take_copied(work, before, err));
}

static bool end_pipeline(Keywork *work, Error *err)
{
    if (PQpipelineSync(work->pg) != 1) {
        return fail_pipeline(work, err);
    }
    CLEANUP(keywork_clear) PGresult *sync = PQgetResult(work->pg);
    return (PQresultStatus(sync) == PGRES_PIPELINE_SYNC && PQexitPipelineMode(work->pg) == 1) ||
           fail_pipeline(work, err);
}

static bool copy_all(Keywork *work, KeyworkReport *ret, Error *err)
{
    Chunk chunk = {.places = {.count = 0}};
    bool ok = keywork_do(work, "BEGIN ISOLATION LEVEL REPEATABLE READ", err) &&
              keywork_do(work, "SELECT keys.read_bulk()", err) &&
              (PQenterPipelineMode(work->pg) == 1 || fail_pipeline(work, err)) &&
              copy_chunks(work, &chunk, ret, err) && end_pipeline(work, err) &&
              keywork_do(work, "CLOSE key_rows", err) &&
              keywork_do(work, "SELECT keys.index_bulk()", err) && keywork_do(work, "COMMIT", err);
    buf_done(&chunk.places.bytes);
    buf_done(&chunk.fresh.bytes);
    return ok;
}

// ---- the swap ----

static bool catch_up(Keywork *work, Error *err)
{
    for (int i = 0; i < ROUNDS_MAX && keywork_goes_on(work, err); i++) {
        CLEANUP(keywork_clear)
        PGresult *rows = keywork_query(work, "SELECT keys.catch_up_bulk()", err);
        if (rows == NULL) {
            return false;
        }
        if (db_get_int(rows, 0, 0) < FEW) {
            return true;
        }
    }
    return error_set(err, ERROR_TRANSIENT, "data keys change faster than they are carried over");
}

// Others hold the table for moments, autovacuum for longer.
static bool swap(Keywork *work, Error *err)
{
    static const struct timespec PAUSE = {.tv_nsec = SWAP_PAUSE_MS * 1000000L};
    for (int i = 0; i < SWAP_TRIES && keywork_goes_on(work, err); i++) {
        if (!catch_up(work, err)) {
            return false;
        }
        if (keywork_do(work, "SELECT keys.swap_bulk()", err)) {
            return true;
        }
        if (PQstatus(work->pg) != CONNECTION_OK || err->kind != ERROR_TRANSIENT) {
            return false;
        }
        (void)nanosleep(&PAUSE, NULL);
    }
    return false;
}

bool keywork_bulk(Keywork *work, Str head, KeyworkReport *ret, Error *err)
{
    const char *const values[] = {head.ptr};
    const int lengths[] = {(int)head.len};
    CLEANUP(keywork_clear)
    PGresult *begun =
        keywork_ask(work, "SELECT keys.begin_bulk($1::bytea)", 1, values, lengths, err);
    if (begun == NULL || db_get_int(begun, 0, 0) == 0) {
        return begun != NULL;
    }
    CRASH_POINT("keywork.begun");
    if (!copy_all(work, ret, err)) {
        return false;
    }
    CRASH_POINT("keywork.copied");
    if (!swap(work, err)) {
        return false;
    }
    CRASH_POINT("keywork.swapped");
    return true;
}
