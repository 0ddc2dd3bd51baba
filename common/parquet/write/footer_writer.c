// SPDX-License-Identifier: Apache-2.0
#include "common/parquet/write/footer_writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/parquet/checksum.h"
#include "common/parquet/write/encode.h"
#include "common/parquet/write/thrift_writer.h"

// ---- indexes ----

void footer_put_bloom(Buf *out, size_t len)
{
    ThriftWriter w = {.out = out};
    thrift_i32(&w, 1, (int64_t)len);
    for (int id = 2; id <= 4; id++) { // split blocks, XXH64, uncompressed
        thrift_struct(&w, id);
        thrift_struct(&w, 1);
        thrift_leave(&w);
        thrift_leave(&w);
    }
    thrift_leave(&w);
}

static bool all_bounded(const ChunkEntry *chunk)
{
    for (uint32_t i = 0; i < chunk->page_count; i++) {
        const PageEntry *page = &chunk->pages[i];
        if (!page->bounds.any && page->nulls < page->rows) {
            return false;
        }
    }
    return true;
}

static void put_page_bounds(
    ThriftWriter *w, int id, const ParquetColumn *column, const ChunkEntry *chunk)
{
    thrift_list(w, id, THRIFT_BINARY, chunk->page_count);
    for (uint32_t i = 0; i < chunk->page_count; i++) {
        const Bounds *bounds = &chunk->pages[i].bounds;
        char space[8];
        Str value = id == INDEX_MIN ? bounds_least(bounds, column->type, space)
                                    : bounds_greatest(bounds, column->type, space);
        thrift_element_bytes(w, bounds->any ? value : STR_EMPTY);
    }
}

bool footer_put_index(Buf *out, const ParquetColumn *column, const ChunkEntry *chunk)
{
    if (column->no_statistics || column->type == PARQUET_BOOL || !all_bounded(chunk)) {
        return false;
    }
    ThriftWriter w = {.out = out};
    thrift_list(&w, INDEX_NULL_PAGES, THRIFT_TRUE, chunk->page_count);
    for (uint32_t i = 0; i < chunk->page_count; i++) {
        buf_char(out, chunk->pages[i].bounds.any ? THRIFT_FALSE : THRIFT_TRUE);
    }
    put_page_bounds(&w, INDEX_MIN, column, chunk);
    put_page_bounds(&w, INDEX_MAX, column, chunk);
    thrift_i32(&w, INDEX_ORDER, 0); // unordered
    thrift_list(&w, INDEX_NULLS, THRIFT_I64, chunk->page_count);
    for (uint32_t i = 0; i < chunk->page_count; i++) {
        thrift_zigzag(out, chunk->pages[i].nulls);
    }
    thrift_leave(&w);
    return true;
}

void footer_put_offsets(Buf *out, const ChunkEntry *chunk)
{
    ThriftWriter w = {.out = out};
    uint64_t row = 0;
    thrift_list(&w, OFFSETS_PAGES, THRIFT_STRUCT, chunk->page_count);
    for (uint32_t i = 0; i < chunk->page_count; i++) {
        thrift_enter(&w);
        thrift_i64(&w, LOCATION_AT, (int64_t)chunk->pages[i].at);
        thrift_i32(&w, LOCATION_LEN, chunk->pages[i].len);
        thrift_i64(&w, LOCATION_ROW, (int64_t)row);
        thrift_leave(&w);
        row += chunk->pages[i].rows;
    }
    thrift_leave(&w);
}

// ---- schema ----

static int physical_type(ParquetType type)
{
    switch (type) {
    case PARQUET_BOOL:
        return PHYSICAL_BOOL;
    case PARQUET_I32:
        return PHYSICAL_I32;
    case PARQUET_I64:
        return PHYSICAL_I64;
    case PARQUET_STRING:
    case PARQUET_BYTES:
        break;
    }
    return PHYSICAL_BYTES;
}

static void put_time(ThriftWriter *w)
{
    thrift_bool(w, 1, true); // adjusted to UTC
    thrift_struct(w, 2);     // unit:
    thrift_struct(w, 2);     // microseconds
    thrift_leave(w);
    thrift_leave(w);
}

static void put_i16(ThriftWriter *w)
{
    thrift_field(w, 1, THRIFT_I8);
    buf_char(w->out, 16);
    thrift_bool(w, 2, true); // signed
}

static void put_logical(ThriftWriter *w, int logical)
{
    thrift_struct(w, SCHEMA_LOGICAL);
    thrift_struct(w, logical);
    if (logical == LOGICAL_TIME) {
        put_time(w);
    } else if (logical == LOGICAL_INTEGER) {
        put_i16(w);
    }
    thrift_leave(w);
    thrift_leave(w);
}

static void put_column(ThriftWriter *w, const ParquetColumn *column)
{
    thrift_enter(w);
    thrift_i32(w, SCHEMA_TYPE, physical_type(column->type));
    thrift_i32(w, SCHEMA_OPTIONAL, column->optional ? 1 : 0);
    thrift_bytes(w, SCHEMA_NAME, str_from(column->name));
    if (column->logical == PARQUET_JSON) {
        thrift_i32(w, SCHEMA_CONVERTED, CONVERTED_JSON);
        put_logical(w, LOGICAL_JSON);
    } else if (column->type == PARQUET_STRING) {
        thrift_i32(w, SCHEMA_CONVERTED, CONVERTED_UTF8);
        put_logical(w, LOGICAL_STRING);
    } else if (column->logical == PARQUET_TIME_US) {
        thrift_i32(w, SCHEMA_CONVERTED, CONVERTED_TIME_US);
        put_logical(w, LOGICAL_TIME);
    } else if (column->logical == PARQUET_I16) {
        thrift_i32(w, SCHEMA_CONVERTED, CONVERTED_I16);
        put_logical(w, LOGICAL_INTEGER);
    }
    thrift_leave(w);
}

static void put_schema(ThriftWriter *w, const FileEntry *file)
{
    thrift_list(w, FILE_SCHEMA, THRIFT_STRUCT, file->column_count + 1);
    thrift_enter(w);
    thrift_bytes(w, SCHEMA_NAME, STR("row"));
    thrift_i32(w, SCHEMA_CHILDREN, (int64_t)file->column_count);
    thrift_leave(w);
    for (size_t i = 0; i < file->column_count; i++) {
        put_column(w, &file->columns[i]);
    }
}

// ---- row groups ----

static void put_encodings(ThriftWriter *w, const ChunkEntry *chunk)
{
    const struct {
        bool used;
        int encoding;
    } all[] = {
        {chunk->plain || chunk->places, ENCODING_PLAIN},
        {true, ENCODING_RLE},
        {chunk->places, ENCODING_PLACES},
        {chunk->delta, ENCODING_DELTA},
    };
    size_t count = 0;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        count += all[i].used ? 1 : 0;
    }
    thrift_list(w, META_ENCODINGS, THRIFT_I32, count);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (all[i].used) {
            thrift_zigzag(w->out, all[i].encoding);
        }
    }
}

static void put_statistics(ThriftWriter *w, const ParquetColumn *column, const ChunkEntry *chunk)
{
    char space[8];
    thrift_struct(w, META_STATISTICS);
    thrift_i64(w, STATISTICS_NULLS, (int64_t)chunk->nulls);
    if (chunk->bounds.any) {
        const Bounds *bounds = &chunk->bounds;
        thrift_bytes(w, STATISTICS_MAX, bounds_greatest(bounds, column->type, space));
        thrift_bytes(w, STATISTICS_MIN, bounds_least(bounds, column->type, space));
        thrift_bool(w, STATISTICS_MAX_EXACT, bounds->greatest.exact);
        thrift_bool(w, STATISTICS_MIN_EXACT, bounds->least.exact);
    }
    thrift_leave(w);
}

static void put_pair(ThriftWriter *w, Str name, Str value)
{
    thrift_enter(w);
    thrift_bytes(w, 1, name);
    thrift_bytes(w, 2, value);
    thrift_leave(w);
}

static void put_chunk_crcs(ThriftWriter *w, const ChunkEntry *chunk)
{
    char text[CRC_HEX * CHUNK_CRCS + 1];
    snprintf(
        text, sizeof text, "%08" PRIx32 "%08" PRIx32 "%08" PRIx32 "%08" PRIx32, chunk->bloom.crc,
        chunk->index.crc, chunk->offsets.crc, chunk->headers_crc);
    thrift_list(w, META_PAIRS, THRIFT_STRUCT, 1);
    put_pair(w, STR(CHUNK_CRC_NAME), str_from(text));
}

static void put_chunk_meta(ThriftWriter *w, const ParquetColumn *column, const ChunkEntry *chunk)
{
    thrift_struct(w, CHUNK_META);
    thrift_i32(w, META_TYPE, physical_type(column->type));
    put_encodings(w, chunk);
    thrift_list(w, META_PATH, THRIFT_BINARY, 1);
    thrift_element_bytes(w, str_from(column->name));
    thrift_i32(w, META_CODEC, column->uncompressed ? CODEC_NONE : CODEC_ZSTD);
    thrift_i64(w, META_VALUES, (int64_t)chunk->rows);
    thrift_i64(w, META_RAW, (int64_t)chunk->raw);
    thrift_i64(w, META_PACKED, (int64_t)chunk->packed);
    put_chunk_crcs(w, chunk);
    thrift_i64(w, META_DATA_AT, (int64_t)chunk->data_at);
    if (chunk->dictionary_at > 0) {
        thrift_i64(w, META_DICTIONARY_AT, (int64_t)chunk->dictionary_at);
    }
    put_statistics(w, column, chunk);
    if (chunk->bloom.len > 0) {
        thrift_i64(w, META_BLOOM_AT, (int64_t)chunk->bloom.at);
        thrift_i32(w, META_BLOOM_LEN, chunk->bloom.len);
    }
    thrift_leave(w);
}

static void put_chunk(ThriftWriter *w, const ParquetColumn *column, const ChunkEntry *chunk)
{
    thrift_enter(w);
    thrift_i64(w, CHUNK_OFFSET, 0);
    put_chunk_meta(w, column, chunk);
    thrift_i64(w, CHUNK_OFFSETS_AT, (int64_t)chunk->offsets.at);
    thrift_i32(w, CHUNK_OFFSETS_LEN, chunk->offsets.len);
    if (chunk->index.len > 0) {
        thrift_i64(w, CHUNK_INDEX_AT, (int64_t)chunk->index.at);
        thrift_i32(w, CHUNK_INDEX_LEN, chunk->index.len);
    }
    thrift_leave(w);
}

static void put_sorting(ThriftWriter *w, const FileEntry *file)
{
    size_t count = 0;
    for (size_t i = 0; i < file->column_count; i++) {
        count += file->columns[i].sorted ? 1 : 0;
    }
    if (count == 0) {
        return;
    }
    thrift_list(w, GROUP_SORTING, THRIFT_STRUCT, count);
    for (size_t i = 0; i < file->column_count; i++) {
        if (file->columns[i].sorted) {
            thrift_enter(w);
            thrift_i32(w, 1, (int64_t)i);
            thrift_bool(w, 2, false); // not descending
            thrift_bool(w, 3, false); // nulls last
            thrift_leave(w);
        }
    }
}

static void put_group(ThriftWriter *w, const FileEntry *file, size_t ordinal)
{
    const GroupEntry *group = &file->groups[ordinal];
    thrift_enter(w);
    thrift_list(w, GROUP_COLUMNS, THRIFT_STRUCT, file->column_count);
    for (size_t i = 0; i < file->column_count; i++) {
        put_chunk(w, &file->columns[i], &group->chunks[i]);
    }
    thrift_i64(w, GROUP_BYTES, (int64_t)group->raw);
    thrift_i64(w, GROUP_ROWS, (int64_t)group->rows);
    put_sorting(w, file);
    thrift_i64(w, GROUP_OFFSET, (int64_t)group->at);
    thrift_i64(w, GROUP_PACKED, (int64_t)group->packed);
    thrift_field(w, GROUP_ORDINAL, THRIFT_I16);
    thrift_zigzag(w->out, (int64_t)ordinal);
    thrift_leave(w);
}

// ---- the footer ----

// Where the footer's own checksum is to be written.
static size_t put_metadata(ThriftWriter *w, const FileEntry *file)
{
    thrift_list(w, FILE_METADATA, THRIFT_STRUCT, file->pairs + 1);
    for (size_t i = 0; i < file->pairs; i++) {
        put_pair(w, str_from(file->metadata[i][0]), str_from(file->metadata[i][1]));
    }
    put_pair(w, STR(FOOTER_CRC_NAME), STR("00000000"));
    return w->out->len - 1 - CRC_HEX;
}

static void put_orders(ThriftWriter *w, const FileEntry *file)
{
    thrift_list(w, FILE_ORDERS, THRIFT_STRUCT, file->column_count);
    for (size_t i = 0; i < file->column_count; i++) {
        thrift_enter(w);
        thrift_struct(w, 1); // by the type
        thrift_leave(w);
        thrift_leave(w);
    }
}

bool footer_put(Buf *out, const FileEntry *file)
{
    size_t from = out->len;
    ThriftWriter w = {.out = out};
    thrift_i32(&w, FILE_VERSION, 2);
    put_schema(&w, file);
    thrift_i64(&w, FILE_ROWS, (int64_t)file->rows);
    thrift_list(&w, FILE_GROUPS, THRIFT_STRUCT, file->group_count);
    for (size_t i = 0; i < file->group_count; i++) {
        put_group(&w, file, i);
    }
    size_t crc_at = put_metadata(&w, file);
    thrift_bytes(&w, FILE_CREATOR, STR("stentor parquet 1"));
    put_orders(&w, file);
    thrift_leave(&w);
    if (out->full) {
        return false;
    }
    size_t len = out->len - from;
    char crc[CRC_HEX + 1];
    snprintf(crc, sizeof crc, "%08" PRIx32, parquet_crc32(0, out->ptr + from, len));
    memcpy(out->ptr + crc_at, crc, CRC_HEX);
    encode_u32(out, (uint32_t)len);
    return buf_cstr(out, PARQUET_MAGIC);
}
