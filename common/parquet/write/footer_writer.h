// SPDX-License-Identifier: Apache-2.0
// What stands behind a file's row groups: indexes, and the footer that says where everything is.
#pragma once

#include "common/parquet/write/column_writer.h"

// A row group that is written.
typedef struct GroupEntry {
    uint64_t at, rows, raw, packed;
    ChunkEntry *chunks; // one for each column
} GroupEntry;

typedef struct FileEntry {
    const ParquetColumn *columns;
    size_t column_count;
    const GroupEntry *groups;
    size_t group_count;
    uint64_t rows;
    const char *const (*metadata)[2];
    size_t pairs;
} FileEntry;

// The header of a bloom filter of `len` bytes.
void footer_put_bloom(Buf *out, size_t len);
// false: it has none, for a page with values has no bounds.
bool footer_put_index(Buf *out, const ParquetColumn *column, const ChunkEntry *chunk);
void footer_put_offsets(Buf *out, const ChunkEntry *chunk);
// The footer with its length and magic. false: over FOOTER_MAX.
bool footer_put(Buf *out, const FileEntry *file);
