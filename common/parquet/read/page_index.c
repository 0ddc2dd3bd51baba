// SPDX-License-Identifier: Apache-2.0
#include "common/parquet/read/page_index.h"

#include <stdlib.h>

#include "common/base/arena.h"
#include "common/parquet/bloom.h"
#include "common/parquet/checksum.h"
#include "common/parquet/read/thrift_reader.h"

// ---- offset index ----

static PageLocation read_location(ThriftReader *in)
{
    PageLocation location = {0};
    ThriftField field = {0};
    while (thrift_next(in, &field)) {
        if (field.id == LOCATION_AT) {
            location.at = (uint64_t)thrift_get_int(in, &field);
        } else if (field.id == LOCATION_ROW) {
            location.first = (uint64_t)thrift_get_int(in, &field);
        } else {
            thrift_skip(in, &field);
        }
    }
    return location;
}

// Ascending, within the chunk, from its first row on.
static bool in_order(const PageLocations *locations, const ChunkInfo *chunk)
{
    for (size_t i = 0; i < locations->count; i++) {
        const PageLocation *page = &locations->pages[i];
        bool follows = i == 0 ? page->first == 0 && page->at == chunk->data_at
                              : page->first > page[-1].first && page->at > page[-1].at;
        if (!follows || page->first >= chunk->rows || page->at >= chunk->end) {
            return false;
        }
    }
    return locations->count > 0;
}

static bool read_locations(PageLocations *ret, Str bytes)
{
    ThriftReader in = {.rest = bytes};
    ThriftField field = {0};
    while (thrift_next(&in, &field)) {
        if (field.id != OFFSETS_PAGES) {
            thrift_skip(&in, &field);
            continue;
        }
        size_t count = thrift_get_list(&in, &field, THRIFT_STRUCT, CHUNK_PAGES_MAX);
        ret->pages = xrealloc(ret->pages, (count + 1) * sizeof *ret->pages);
        for (ret->count = 0; ret->count < count && !in.bad; ret->count++) {
            ret->pages[ret->count] = read_location(&in);
        }
    }
    return !in.bad;
}

bool page_locations_read(
    PageLocations *locations, const ChunkInfo *chunk, PageReader *pages, Error *err)
{
    locations->count = 0;
    if (chunk->offsets.len == 0) {
        return true;
    }
    Buf bytes;
    buf_init(&bytes, FOOTER_MAX);
    bool ok = page_reader_part(pages, &chunk->offsets, &bytes, err);
    if (ok && (!read_locations(locations, buf_view(&bytes)) || !in_order(locations, chunk))) {
        ok = error_set(
            err, ERROR_PERMANENT, "offset index at %llu", (unsigned long long)chunk->offsets.at);
    }
    buf_done(&bytes);
    return ok;
}

void page_locations_done(PageLocations *locations)
{
    free(locations->pages);
    *locations = (PageLocations){0};
}

size_t page_locations_find(const PageLocations *locations, uint64_t row)
{
    size_t low = 0, high = locations->count; // the first page that begins behind the row
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (locations->pages[middle].first > row) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low > 0 ? low - 1 : locations->count;
}

// ---- bloom filter ----

static bool read_filter(Str bytes, Str *ret_bits)
{
    ThriftReader in = {.rest = bytes};
    ThriftField field = {0};
    int64_t len = 0;
    while (thrift_next(&in, &field)) {
        if (field.id == 1) {
            len = thrift_get_int(&in, &field);
        } else {
            thrift_skip(&in, &field);
        }
    }
    *ret_bits = in.rest;
    return !in.bad && len > 0 && len % BLOOM_BLOCK == 0 && (uint64_t)len == in.rest.len;
}

static bool ask_filter(
    const ChunkInfo *chunk, PageReader *pages, Str value, bool *ret_may, Error *err)
{
    Buf bytes;
    Str bits;
    buf_init(&bytes, BLOOM_MAX + 64);
    bool ok = page_reader_part(pages, &chunk->bloom, &bytes, err);
    if (ok && !read_filter(buf_view(&bytes), &bits)) {
        ok = error_set(
            err, ERROR_PERMANENT, "bloom filter at %llu", (unsigned long long)chunk->bloom.at);
    }
    if (ok) {
        *ret_may = bloom_may_have(bits, parquet_xxh64(value));
    }
    buf_done(&bytes);
    return ok;
}

bool chunk_may_have(const ChunkInfo *chunk, PageReader *pages, Str value, bool *ret_may, Error *err)
{
    *ret_may = chunk->nulls < chunk->rows;
    if (*ret_may && chunk->bounded) {
        *ret_may = str_cmp(chunk->least, value) <= 0 && str_cmp(value, chunk->greatest) <= 0;
    }
    if (*ret_may && chunk->bloom.len > 0) {
        return ask_filter(chunk, pages, value, ret_may, err);
    }
    return true;
}

// ---- column index ----

// Of one list of bounds: which pages lie on the wrong side.
static void narrow(ThriftReader *in, const ThriftField *field, Str value, bool *may, size_t pages)
{
    size_t count = thrift_get_list(in, field, THRIFT_BINARY, CHUNK_PAGES_MAX);
    in->bad = in->bad || count != pages;
    for (size_t i = 0; i < count && !in->bad; i++) {
        Str bound = thrift_take_bytes(in);
        int order = str_cmp(bound, value);
        may[i] = may[i] && (field->id == INDEX_MIN ? order <= 0 : order >= 0);
    }
}

static void drop_null_pages(ThriftReader *in, const ThriftField *field, bool *may, size_t pages)
{
    size_t count = thrift_get_list(in, field, THRIFT_TRUE, CHUNK_PAGES_MAX);
    in->bad = in->bad || count != pages;
    for (size_t i = 0; i < count && !in->bad; i++) {
        may[i] = may[i] && thrift_take_byte(in) != THRIFT_TRUE;
    }
}

static bool read_index(Str bytes, Str value, bool *may, size_t pages)
{
    ThriftReader in = {.rest = bytes};
    ThriftField field = {0};
    while (thrift_next(&in, &field)) {
        if (field.id == INDEX_NULL_PAGES) {
            drop_null_pages(&in, &field, may, pages);
        } else if (field.id == INDEX_MIN || field.id == INDEX_MAX) {
            narrow(&in, &field, value, may, pages);
        } else {
            thrift_skip(&in, &field);
        }
    }
    return !in.bad;
}

bool pages_may_have(
    const ChunkInfo *chunk, PageReader *pages, Str value, bool *ret_may, size_t count, Error *err)
{
    for (size_t i = 0; i < count; i++) {
        ret_may[i] = true;
    }
    if (chunk->index.len == 0) {
        return true;
    }
    Buf bytes;
    buf_init(&bytes, FOOTER_MAX);
    bool ok = page_reader_part(pages, &chunk->index, &bytes, err);
    if (ok && !read_index(buf_view(&bytes), value, ret_may, count)) {
        ok = error_set(
            err, ERROR_PERMANENT, "column index at %llu", (unsigned long long)chunk->index.at);
    }
    buf_done(&bytes);
    return ok;
}
