// SPDX-License-Identifier: Apache-2.0
// A file's footer, read: foreign bytes. What comes out is consistent: every chunk lies within the
// file, every row group has one chunk for each column with as many rows as the group.
#pragma once

#include "common/parquet/format.h"

typedef struct ChunkInfo {
    int codec;
    uint64_t rows, nulls;
    uint64_t at, data_at, end; // at: its first page, of the dictionary if it has one
    bool bounded;              // least and greatest are known; they point into the footer
    Str least, greatest;
    TailPart bloom, index, offsets;
    uint32_t headers_crc; // of the headers of its pages, in order
} ChunkInfo;

typedef struct GroupInfo {
    uint64_t rows;
    ChunkInfo *chunks; // one for each column
} GroupInfo;

typedef struct Footer {
    char *bytes; // its own
    size_t len;
    uint64_t rows;
    size_t count;
    ParquetColumn columns[PARQUET_COLUMNS_MAX];
    char names[PARQUET_COLUMNS_MAX][PARQUET_NAME_MAX + 1];
    GroupInfo *groups;
    size_t group_count;
    char *pair_names[PARQUET_METADATA_MAX], *pair_values[PARQUET_METADATA_MAX];
    size_t pairs;
} Footer;

// Takes `bytes` over, also when it fails; `pages_end` is where they begin in the file. PERMANENT.
bool footer_read(Footer *footer, char *bytes, size_t len, uint64_t pages_end, Error *err);
void footer_done(Footer *footer);
