// SPDX-License-Identifier: Apache-2.0
// What writer and reader of this folder agree on: the numbers of parquet.thrift, and a chunk's
// place in the file.
#pragma once

#include <string.h>

#include "common/parquet/bounds.h"

enum {
    PAGE_MAX = 16 * 1024 * 1024, // bytes of a page, packed or not
    PAGE_ROWS_MAX = 131072,      // that a reader takes
    FOOTER_MAX = 8 * 1024 * 1024,
    GROUPS_MAX = 4096,
    CHUNK_PAGES_MAX = 65536,
    TAIL_LEN = 8, // the footer's length and "PAR1"
};
#define PARQUET_MAGIC "PAR1"
#define FOOTER_CRC_NAME                                                                            \
    "stentor.footer_crc32"             // eight hex digits, computed with zeros in their place
#define CHUNK_CRC_NAME "stentor.crc32" // of bloom filter, column index, offset index, page headers
enum { CRC_HEX = 8, CHUNK_CRCS = 4 };

// clang-format off
enum { PHYSICAL_BOOL = 0, PHYSICAL_I32 = 1, PHYSICAL_I64 = 2, PHYSICAL_BYTES = 6 };
enum { CONVERTED_UTF8 = 0, CONVERTED_TIME_US = 10, CONVERTED_I16 = 16, CONVERTED_JSON = 19 };
enum { LOGICAL_STRING = 1, LOGICAL_TIME = 8, LOGICAL_INTEGER = 10, LOGICAL_JSON = 12 };
enum { CODEC_NONE = 0, CODEC_ZSTD = 6 };
enum { ENCODING_PLAIN = 0, ENCODING_RLE = 3, ENCODING_DELTA = 5, ENCODING_PLACES = 8 };
enum { PAGE_DATA = 0, PAGE_DICTIONARY = 2 };
// FileMetaData, SchemaElement, RowGroup, ColumnChunk, ColumnMetaData, Statistics
enum { FILE_VERSION = 1, FILE_SCHEMA, FILE_ROWS, FILE_GROUPS, FILE_METADATA, FILE_CREATOR, FILE_ORDERS };
enum { SCHEMA_TYPE = 1, SCHEMA_OPTIONAL = 3, SCHEMA_NAME, SCHEMA_CHILDREN, SCHEMA_CONVERTED, SCHEMA_LOGICAL = 10 };
enum { GROUP_COLUMNS = 1, GROUP_BYTES, GROUP_ROWS, GROUP_SORTING, GROUP_OFFSET, GROUP_PACKED, GROUP_ORDINAL };
enum { CHUNK_OFFSET = 2, CHUNK_META, CHUNK_OFFSETS_AT, CHUNK_OFFSETS_LEN, CHUNK_INDEX_AT, CHUNK_INDEX_LEN };
enum { META_TYPE = 1, META_ENCODINGS, META_PATH, META_CODEC, META_VALUES, META_RAW, META_PACKED, META_PAIRS,
       META_DATA_AT, META_DICTIONARY_AT = 11, META_STATISTICS, META_ENCODING_STATS, META_BLOOM_AT, META_BLOOM_LEN };
enum { STATISTICS_NULLS = 3, STATISTICS_MAX = 5, STATISTICS_MIN, STATISTICS_MAX_EXACT, STATISTICS_MIN_EXACT };
// PageHeader, DataPageHeader and DictionaryPageHeader
enum { PAGE_TYPE = 1, PAGE_RAW, PAGE_PACKED, PAGE_CRC, PAGE_OF_DATA, PAGE_OF_DICTIONARY = 7 };
enum { DATA_VALUES = 1, DATA_ENCODING, DATA_DEFINITION, DATA_REPETITION };
// OffsetIndex and PageLocation, ColumnIndex
enum { OFFSETS_PAGES = 1 };
enum { LOCATION_AT = 1, LOCATION_LEN, LOCATION_ROW };
enum { INDEX_NULL_PAGES = 1, INDEX_MIN, INDEX_MAX, INDEX_ORDER, INDEX_NULLS };
// clang-format on

// Whether it is UTF-8. Most text is ASCII: eight bytes a step.
static inline bool is_text(Str value)
{
    uint64_t word, high = 0;
    size_t i = 0;
    for (; i + sizeof word <= value.len; i += sizeof word) {
        memcpy(&word, value.ptr + i, sizeof word);
        high |= word;
    }
    for (; i < value.len; i++) {
        high |= (uint8_t)value.ptr[i];
    }
    return (high & UINT64_C(0x8080808080808080)) == 0 || str_is_utf8(value);
}

// A part of the file behind the pages; len 0: the chunk has none.
typedef struct TailPart {
    uint64_t at;
    uint32_t len, crc;
} TailPart;

static inline bool is_bytes(ParquetType type)
{
    return type == PARQUET_STRING || type == PARQUET_BYTES;
}
