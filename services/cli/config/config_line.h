// SPDX-License-Identifier: Apache-2.0
// One line of an export of CONFIG: an entry with the bytes that the stream holds, when it was
// stored, and a checksum over all of it; the last line counts the entries and sums their checksums.
// Pure.
#pragma once

#include "common/base/buf.h"
#include "common/base/error.h"
#include "common/codec/hash.h"

enum { CONFIG_SUBJECT_MAX = 240 };

typedef struct ConfigLine {
    Str subject;
    Str payload; // empty: the entry was removed
    int64_t stored_at_us;
    uint8_t sum[SHA256_LEN];
} ConfigLine;

typedef struct ConfigTotal {
    int64_t entries;
    uint8_t sum[SHA256_LEN]; // of the sum before and each entry's, in their order
} ConfigTotal;

// Writes the line with its line break and adds it to the total (zeroed at the beginning).
void config_line_write(Buf *out, ConfigLine *line, ConfigTotal *total, Arena *arena);
void config_total_write(Buf *out, const ConfigTotal *total);

typedef enum ConfigLineKind { CONFIG_LINE_ENTRY, CONFIG_LINE_TOTAL } ConfigLineKind;

// Reads a line of either kind; an entry is added to `total`, a total must be the same. PERMANENT
// for what is neither or was changed since. What it returns lives in the arena.
bool config_line_read(
    Str text, ConfigTotal *total, Arena *arena, ConfigLineKind *ret_kind, ConfigLine *ret,
    Error *err);
