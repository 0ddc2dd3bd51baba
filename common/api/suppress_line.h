// SPDX-License-Identifier: Apache-2.0
// One line of POST /v1/suppressions/import: a JSON object, as the export writes it. Fields: address
// or address_hash (64 hex digits; it wins, for an export masks the address), channel, category,
// reason, note, expires_at, released_at. Others are passed over. Pure.
#pragma once

#include "common/base/arena.h"
#include "common/base/error.h"
#include "common/bus/events/suppression_event.h"

enum { SUPPRESS_LINE_MAX = 16 * 1024 };

// A line's fields; those that it leaves out have the defaults.
typedef struct SuppressLine {
    Str address; // normalised; empty: only the hash is given
    uint8_t hash[SUPPRESSION_HASH_LEN];
    Channel channel;
    Category category;
    SuppressionReason reason;
    Str note;
    int64_t expires_at_us;
    bool released; // it is in force no more
} SuppressLine;

typedef struct SuppressReading {
    SuppressLine defaults;
    Str tenant;
    Str hash_key;
} SuppressReading;

// ERROR_PERMANENT names the field. Everything in *ret lives in `arena`.
bool suppress_line_parse(
    const SuppressReading *reading, Str line, Arena *arena, SuppressLine *ret, Error *err);
// What becomes of a line: the entry, in `arena`.
Stentor__V1__Suppression *suppress_line_entry(
    const SuppressLine *line, Str tenant, int64_t at_us, Str by, Arena *arena);
