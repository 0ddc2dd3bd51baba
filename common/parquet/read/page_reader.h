// SPDX-License-Identifier: Apache-2.0
// Pages of a file: header, CRC-32, unpacking. One for all columns of a reader.
#pragma once

#include "common/base/buf.h"
#include "common/parquet/format.h"
#include "common/parquet/parquet_reader.h"

typedef struct PageReader PageReader;

typedef struct ReadPage {
    bool dictionary;
    uint32_t values; // nulls too
    int encoding;
    Str body;            // in the buffer given
    uint64_t end;        // where the next one begins
    uint32_t header_crc; // continues the one given
} ReadPage;

PageReader *page_reader_new(ParquetSource source, void *ctx);
void page_reader_free(PageReader *reader);            // NULL-safe
uint64_t page_reader_count(const PageReader *reader); // pages read so far
// The page at `at` of a chunk that ends at `end`, unpacked into `into`. PERMANENT: it is damaged.
bool page_reader_read(
    PageReader *reader, uint64_t at, uint64_t end, int codec, Buf *into, ReadPage *ret, Error *err);
// A part behind the pages, into `into`, checked by its CRC-32.
bool page_reader_part(PageReader *reader, const TailPart *part, Buf *into, Error *err);
