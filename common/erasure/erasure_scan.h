// SPDX-License-Identifier: Apache-2.0
// Where a person's sealed fields lie, and whether one of them could be opened: every table, stream
// and log segment is read whole. A field names its key by subject and generation; it can be opened
// only while that very key exists, because the key is random and was wrapped once. It blocks.
#pragma once

#include "common/erasure/erasure_pg.h"
#include "common/session/session.h"
#include "common/storage/storage_wait.h"

typedef struct ErasurePlace {
    const char *kind; // "table", "stream", "segment", "archive"
    const char *name;
    const char *sha256;   // hex, of a segment; NULL
    uint64_t first, last; // sequences; 0: none
    uint64_t looked_at;   // rows or messages
    uint64_t sealed;      // of these, with a field that a destroyed key sealed
    uint64_t readable;    // of those, whose key exists all the same
    uint64_t in_clear;    // of looked_at, with one of the texts
} ErasurePlace;

typedef struct ErasureField {
    Str bytes;
    bool key_exists;
} ErasureField;

typedef struct ErasureScan {
    Arena *arena;
    const char *id;
    ErasureField *fields; // of the destroyed keys
    size_t field_count;
    const Str
        *texts; // that should stand nowhere; matched as they are, in tables whatever their case
    size_t text_count;
    ErasurePlace *places;
    size_t count, room;
} ErasureScan;

// Everything in `arena`; the texts are borrowed.
bool erasure_scan_begin(
    PGconn *pg, const char *id, const Str *texts, size_t text_count, Arena *arena, ErasureScan *ret,
    Error *err);
// The tables, by one function of the owner's.
bool erasure_scan_tables(ErasureScan *scan, PGconn *pg, Error *err);
// Every stream of the topology, as it is now.
bool erasure_scan_streams(ErasureScan *scan, Session *session, Error *err);
// Every segment in object storage.
bool erasure_scan_segments(ErasureScan *scan, PGconn *pg, StorageWait *storage, Error *err);
// Every archived object of the request's tenant.
bool erasure_scan_archive(ErasureScan *scan, PGconn *pg, StorageWait *storage, Error *err);

// ---- for the scans ----

ErasurePlace *erasure_add_place(ErasureScan *scan, const char *kind, const char *name);
// One row or message more.
void erasure_look_at(const ErasureScan *scan, ErasurePlace *place, Str bytes);
