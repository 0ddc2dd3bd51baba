// SPDX-License-Identifier: Apache-2.0
// The tables of keys as a file of their own: after a restore of an older backup of Postgres, whose
// data keys are wrapped by epoch keys that do not exist any more, they come from here. Wrapped keys
// only: without the master key file and the folder of epoch keys it opens nothing. Blocking.
//
// The file: a line "stentor keys dump 1 <microseconds>"; for each table a line "table <name>
// <columns>" and pieces of COPY BINARY, each behind its length in four bytes, the last one empty; a
// line "end <data keys>"; and "sha256 <hex>" of all before it.
#pragma once

#include <libpq-fe.h>
#include <stdatomic.h>
#include <stdio.h>

#include "common/base/error.h"
#include "common/base/str.h"

enum { KEYS_DUMP_NAME_SIZE = 40, KEYS_DUMP_PIECE_MAX = 4 * 1024 * 1024 };

typedef struct KeysDump {
    int64_t taken_us;
    uint64_t data_keys;
} KeysDump;

// Puts the file at `path`, whole or not at all, durable. `stop` (NULL: none) ends it with
// ERROR_CANCELLED. ERROR_TRANSIENT: Postgres, the disk.
bool keys_dump_write(
    PGconn *pg, const char *path, int64_t now_us, atomic_bool *stop, KeysDump *ret, Error *err);
// Reads all of it. ERROR_CONFIG: it cannot be read; ERROR_PERMANENT: it is damaged, cut off, or
// none.
bool keys_dump_check(const char *path, KeysDump *ret, Error *err);

typedef struct KeysRestored {
    uint64_t added, changed; // data keys
} KeysRestored;

// Into the tables that are there, as their owner, while no process does the work on keys: what is
// missing is added; of two wrapped forms the one of the later epoch stays; what is destroyed in
// either is destroyed. One transaction, after the file was read once. Safe to repeat.
bool keys_dump_restore(
    PGconn *pg, const char *path, KeysDump *ret, KeysRestored *ret_restored, Error *err);

// ---- a folder of them ----

// "keys-20261123T151030Z.dump": the time can be read from the name. 0: it is none.
void keys_dump_name(int64_t taken_us, char out[KEYS_DUMP_NAME_SIZE]);
int64_t keys_dump_time(Str name);
// The time of the newest; 0: there is none. ERROR_CONFIG: the folder cannot be read.
bool keys_dump_newest(const char *folder, int64_t *ret_us, Error *err);
// Removes those that are older, but never the newest.
bool keys_dump_trim(const char *folder, int64_t before_us, Error *err);

// ---- the format ----

// What is read, in order. Any may be NULL; false with an error ends the reading.
typedef struct KeysDumpReader {
    bool (*table)(void *ctx, Str name, Str columns, Error *err);
    bool (*piece)(void *ctx, Str bytes, Error *err);
    bool (*end)(void *ctx, Error *err); // of a table
    void *ctx;
} KeysDumpReader;

// Law: what a reader has seen counts only once this has returned true.
bool keys_dump_read(FILE *file, const KeysDumpReader *reader, KeysDump *ret, Error *err);
