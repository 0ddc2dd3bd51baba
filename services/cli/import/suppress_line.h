// SPDX-License-Identifier: Apache-2.0
// One line of an import: CSV under a header line, or a JSON object (NDJSON, as the export writes
// it). Columns and fields: address or address_hash (64 hex digits; it wins, for an export masks the
// address), channel, category, reason, note, expires_at, released_at. Others are passed over. Pure.
#pragma once

#include "common/base/arena.h"
#include "common/base/error.h"
#include "common/bus/events/suppression_event.h"

enum { SUPPRESS_COLUMNS_MAX = 32, SUPPRESS_LINE_MAX = 16 * 1024 };

typedef struct SuppressColumns {
    int count;                       // 0: NDJSON
    int field[SUPPRESS_COLUMNS_MAX]; // which field each column holds; -1: none that is known
} SuppressColumns;

// What a line says; what it leaves out is the defaults'.
typedef struct SuppressLine {
    Str address; // normalised; empty: only the hash is told
    uint8_t hash[SUPPRESSION_HASH_LEN];
    Channel channel;
    Category category;
    SuppressionReason reason;
    Str note;
    int64_t expires_at_us;
    bool released; // it is in force no more
} SuppressLine;

// The header line of a CSV file. ERROR_PERMANENT when it names neither address nor address_hash, or
// a column twice.
bool suppress_header_parse(Str line, SuppressColumns *ret, Error *err);

typedef struct SuppressReading {
    SuppressColumns columns;
    SuppressLine defaults;
    Str tenant;
    Str hash_key;
} SuppressReading;

// ERROR_PERMANENT names the field. Everything in *ret lives in `arena`.
bool suppress_line_parse(
    const SuppressReading *reading, Str line, Arena *arena, SuppressLine *ret, Error *err);
