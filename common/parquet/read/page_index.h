// SPDX-License-Identifier: Apache-2.0
// Where a chunk's pages are, and which of them may have a value: offset index, column index,
// statistics, bloom filter. Foreign bytes, checked by their CRC-32.
#pragma once

#include "common/parquet/read/footer_reader.h"
#include "common/parquet/read/page_reader.h"

typedef struct PageLocation {
    uint64_t at;
    uint64_t first; // row of the group
} PageLocation;

typedef struct PageLocations {
    PageLocation *pages;
    size_t count; // 0: the file does not say
} PageLocations;

bool page_locations_read(
    PageLocations *locations, const ChunkInfo *chunk, PageReader *pages, Error *err);
void page_locations_done(PageLocations *locations);
// The page that has the row; `count` when there is none.
size_t page_locations_find(const PageLocations *locations, uint64_t row);

// Whether the chunk may have this value, by its statistics and its bloom filter.
bool chunk_may_have(
    const ChunkInfo *chunk, PageReader *pages, Str value, bool *ret_may, Error *err);
// For each of `count` pages whether it may have the value, by the column index; all of them when
// there is none.
bool pages_may_have(
    const ChunkInfo *chunk, PageReader *pages, Str value, bool *ret_may, size_t count, Error *err);
