// SPDX-License-Identifier: Apache-2.0
// One part of a batch's members: NDJSON lines to sealed chunks, a chunk's worth a call, so that
// the loop turns in between and a one-time code does not wait for a whole upload. Bounded: a part
// has at most UPLOAD_LINES_MAX lines, and what is kept of it is its blobs and its broken lines.
// Pure but for the seals.
#pragma once

#include "common/base/buf.h"
#include "common/campaign/batch_chunk.h"

enum {
    UPLOAD_LINES_MAX = 10000,
    UPLOAD_SLICE_LINES = 250,                  // at a call: 1 to 2 ms
    UPLOAD_BROKEN_BYTES_MAX = 4 * 1024 * 1024, // of the list of broken lines
};

typedef struct Upload {
    MemberRules rules;
    DataKey *key; // borrowed
    ChunkPlace place;
    Str rest;     // of the body
    Arena *arena; // borrowed: the blobs live in it
    int64_t line;
    int64_t broken;
    int64_t members;
    Buf lines; // [{"line":3,"field":"to","detail":"..."}], without its brackets
    Arena *chunk;
    Member *open; // of the chunk that is not closed yet
    size_t open_count;
    size_t open_bytes;
    int32_t *counts; // of the closed ones
    Str *blobs;
    size_t chunks;
    size_t chunk_room;
} Upload;

// `body` must live until upload_done.
void upload_init(
    Upload *upload, const MemberRules *rules, DataKey *key, const ChunkPlace *place, Str body,
    Arena *arena);
void upload_done(Upload *upload);
// Reads on. false with ERROR_PERMANENT: the part is refused as a whole. *ret_ended: all was read
// and all chunks are closed.
bool upload_step(Upload *upload, bool *ret_ended, Error *err);
