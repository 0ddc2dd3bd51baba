// SPDX-License-Identifier: Apache-2.0
// One record of an import: CSV under a header, or a JSON object (NDJSON, as the export writes it).
// Columns and fields: address or address_hash (64 hex digits; it wins, for an export masks the
// address), channel, category, reason, note, expires_at, released_at. Others are passed over. Pure.
#pragma once

#include "common/bus/events/suppression_event.h"
#include "services/cli/import/record_file.h"

// Columns that it does not know are passed over.
extern const RecordKind suppress_records;

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

typedef struct SuppressReading {
    SuppressLine defaults;
    Str tenant;
    Str hash_key;
} SuppressReading;

// ERROR_PERMANENT names the field. Everything in *ret lives in `arena` or in the record.
bool suppress_line_parse(
    const SuppressReading *reading, const RecordColumns *columns, const Record *record,
    Arena *arena, SuppressLine *ret, Error *err);
// The same of an address alone.
bool suppress_address_parse(
    const SuppressReading *reading, Str address, Arena *arena, SuppressLine *ret, Error *err);
