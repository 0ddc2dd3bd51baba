// SPDX-License-Identifier: Apache-2.0
// The parts of a turn. Private to common/keywork.
#pragma once

#include <libpq-fe.h>
#include <stdatomic.h>

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/cleanup.h"
#include "common/epochs/epoch_folder.h"
#include "common/keywork/keywork.h"
#include "common/storage/storage_wait.h"

struct Keywork {
    KeyworkOptions options;
    Arena *arena; // of the options' strings
    PGconn *pg;   // NULL: not connected
    bool held;    // its session has the lock
    MasterKey *master;
    EpochFolder *folder;  // NULL: no epoch keys
    StorageWait *storage; // NULL: dumps are not stored, or nothing was yet
    int64_t stored_us;    // the newest dump there; -1: not known
    uint64_t stuck;       // so many keys cannot be wrapped again, as far as is known
    atomic_bool stopping;
};

DEFINE_CLEANUP(keywork_clear, PGresult *, PQclear)

// ---- Postgres (keywork_pg.c) ----

// NULL: it failed. The answer is binary.
PGresult *keywork_ask(
    Keywork *work, const char *sql, int count, const char *const *values, const int *lengths,
    Error *err);
PGresult *keywork_query(Keywork *work, const char *sql, Error *err); // without parameters
bool keywork_do(Keywork *work, const char *sql, Error *err);
bool keywork_connect(Keywork *work, Error *err);
bool keywork_lock(Keywork *work, Error *err); // sets held
// ERROR_CANCELLED when the turn is to end.
bool keywork_goes_on(Keywork *work, Error *err);
int64_t keywork_int(const PGresult *rows, int row, int column); // 0: null
Str keywork_bytes(const PGresult *rows, int row, int column);
// The postgres form of microseconds since 1970, for a parameter "$n::text::timestamptz".
const char *keywork_time(Arena *arena, int64_t at_us);

// ---- the parts of a turn ----

bool keywork_epochs(Keywork *work, int64_t now_us, KeyworkReport *ret, Error *err);
bool keywork_rewrap(Keywork *work, KeyworkReport *ret, Error *err);
bool keywork_bulk(Keywork *work, Str head, KeyworkReport *ret, Error *err);
bool keywork_end_epochs(Keywork *work, int64_t now_us, KeyworkReport *ret, Error *err);
bool keywork_dump(Keywork *work, int64_t now_us, KeyworkReport *ret, Error *err);
void keywork_note(KeyworkReport *report, KeyworkDeed deed, uint32_t number, const uint8_t *id);

// An array as a binary parameter: values of one type, each with its length; NULL: null.
typedef struct KeyworkArray {
    Buf bytes;
    uint32_t count;
    bool has_null;
} KeyworkArray;
enum { KEYWORK_INT4 = 23, KEYWORK_BYTEA = 17, KEYWORK_TID = 27 };
void keywork_array_begin(KeyworkArray *array, uint32_t type);
void keywork_array_push(KeyworkArray *array, const void *value, size_t len);
void keywork_array_end(KeyworkArray *array);
