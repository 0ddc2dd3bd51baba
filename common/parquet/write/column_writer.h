// SPDX-License-Identifier: Apache-2.0
// One column of the row group at hand: values gathered into pages, pages packed and held until the
// group ends, when they become a chunk of the file.
#pragma once

#include "common/base/buf.h"
#include "common/parquet/format.h"
#include "common/parquet/write/page_packer.h"

// A page of a chunk that is written.
typedef struct PageEntry {
    uint64_t at;
    uint32_t len; // with its header
    uint32_t rows, nulls;
    Bounds bounds; // closed
} PageEntry;

// A chunk that is written: what footer and indexes say of it.
typedef struct ChunkEntry {
    uint64_t dictionary_at; // 0: none
    uint64_t data_at, packed, raw;
    TailPart bloom, index, offsets;
    uint32_t headers_crc; // of the headers of its pages, in order
    uint64_t rows, nulls;
    bool plain, places, delta; // encodings of its data pages
    Bounds bounds;             // closed
    PageEntry *pages;
    uint32_t page_count;
} ChunkEntry;

typedef struct ColumnWriter ColumnWriter;

// Borrows packer and column. page_rows is the most rows of a page.
ColumnWriter *column_writer_new(
    const ParquetColumn *column, PagePacker *packer, uint32_t page_rows);
void column_writer_free(ColumnWriter *w); // NULL-safe
// A value that parquet_writer_row has checked.
void column_writer_add(ColumnWriter *w, const ParquetValue *value);
// Ends the chunk: `emit` gets its bytes in order. Another chunk begins. `at` is the file's length
// so far; `bloom` gets the bitset of the filter, nothing when there is none. The receiver frees
// ret->pages.
typedef bool (*ColumnEmit)(void *ctx, const void *bytes, size_t len);
bool column_writer_end(
    ColumnWriter *w, uint64_t at, ColumnEmit emit, void *ctx, Buf *bloom, ChunkEntry *ret);
