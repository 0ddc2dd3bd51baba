// SPDX-License-Identifier: Apache-2.0
#define _DEFAULT_SOURCE // endian.h
#include "common/parquet/write/column_writer.h"

#include <endian.h>
#include <stdlib.h>

#include "common/base/arena.h"
#include "common/parquet/bloom.h"
#include "common/parquet/checksum.h"
#include "common/parquet/write/encode.h"
#include "common/parquet/write/page_values.h"

typedef struct HeldPage {
    PackedPage is;
    PageEntry entry;
} HeldPage;

struct ColumnWriter {
    const ParquetColumn *column;
    PagePacker *packer;
    uint32_t page_rows;
    PageValues page; // under way
    // The chunk under way.
    Dictionary *dictionary; // NULL: the column has none
    bool by_place;          // the page under way goes by places
    bool place_pages;       // a page went by places, so the dictionary is written
    bool plain_pages, delta_pages;
    uint64_t *hashes; // for the bloom filter
    size_t hash_count, hash_cap;
    HeldPage *held;
    size_t held_count, held_cap;
};

ColumnWriter *column_writer_new(const ParquetColumn *column, PagePacker *packer, uint32_t page_rows)
{
    ColumnWriter *w = xcalloc(1, sizeof *w);
    w->column = column;
    w->packer = packer;
    w->page_rows = page_rows;
    w->by_place = is_bytes(column->type) && column->encoding == PARQUET_DICTIONARY;
    w->dictionary = w->by_place ? dictionary_new() : NULL;
    page_values_init(&w->page, column->type, page_rows, w->by_place);
    return w;
}

static void drop_held(ColumnWriter *w)
{
    for (size_t i = 0; i < w->held_count; i++) {
        free(w->held[i].is.bytes);
    }
    w->held_count = 0;
}

void column_writer_free(ColumnWriter *w)
{
    if (w == NULL) {
        return;
    }
    drop_held(w);
    dictionary_free(w->dictionary);
    page_values_done(&w->page);
    free(w->hashes);
    free(w->held);
    free(w);
}

static void note_hash(ColumnWriter *w, uint64_t hash)
{
    if (w->hash_count == w->hash_cap) {
        w->hash_cap = w->hash_cap > 0 ? 2 * w->hash_cap : 1024;
        w->hashes = xrealloc(w->hashes, w->hash_cap * sizeof *w->hashes);
    }
    w->hashes[w->hash_count++] = hash;
}

// ---- pages ----

// The page under way, and those behind it, go without places.
static void leave_dictionary(ColumnWriter *w)
{
    w->by_place = false;
    page_values_resolve(&w->page, w->dictionary);
    for (uint32_t i = 0; w->column->bloom && i < dictionary_count(w->dictionary); i++) {
        note_hash(w, dictionary_hash(w->dictionary, i));
    }
}

// The encoding that it had. A page without a value is plain: an empty dictionary has no place.
static int put_values(ColumnWriter *w, Buf *out)
{
    if (w->by_place && w->page.values > 0) {
        page_values_put_places(&w->page, w->dictionary, out);
        w->place_pages = true;
        return ENCODING_PLACES;
    }
    if (w->column->encoding == PARQUET_DELTA) {
        encode_delta(out, w->page.numbers, w->page.values);
        w->delta_pages = true;
        return ENCODING_DELTA;
    }
    page_values_put_plain(&w->page, out);
    w->plain_pages = true;
    return ENCODING_PLAIN;
}

static void hold(ColumnWriter *w, PackedPage packed, const PageEntry *entry)
{
    if (w->held_count == w->held_cap) {
        w->held_cap = w->held_cap > 0 ? 2 * w->held_cap : 16;
        w->held = xrealloc(w->held, w->held_cap * sizeof *w->held);
    }
    w->held[w->held_count] = (HeldPage){packed, *entry};
    w->held[w->held_count++].entry.len = packed.len;
}

static void end_page(ColumnWriter *w)
{
    PageValues *page = &w->page;
    // Places that are nearly as many as values save nothing.
    if (w->by_place && !w->place_pages && page->place_bytes <= PARQUET_PAGE_BYTES &&
        2 * dictionary_count(w->dictionary) > page->values) {
        leave_dictionary(w);
    }
    PageEntry entry = {.rows = page->rows, .nulls = page->rows - page->values};
    if (!w->column->no_statistics && w->column->type != PARQUET_BOOL) {
        entry.bounds = page_values_bounds(page, w->by_place ? w->dictionary : NULL);
    }
    Buf *out = page_packer_page(w->packer);
    if (w->column->optional) {
        page_values_put_levels(page, out);
    }
    PageKind kind = {.uncompressed = w->column->uncompressed, .values = page->rows};
    kind.encoding = put_values(w, out);
    hold(w, page_packer_pack(w->packer, &kind), &entry);
    page_values_clear(page);
}

// ---- values ----

static void add_bytes(ColumnWriter *w, Str value)
{
    if (w->by_place) {
        if (dictionary_place(w->dictionary, value, &w->page.places[w->page.values])) {
            w->page.place_bytes += value.len;
            w->page.values++;
            return;
        }
        if (w->page.place_bytes > PARQUET_PAGE_BYTES) {
            end_page(w); // it would be too large as text
        }
        leave_dictionary(w);
    }
    page_values_add_text(&w->page, value);
    if (w->column->bloom) {
        note_hash(w, parquet_xxh64(value));
    }
}

static void add_number(ColumnWriter *w, int64_t number)
{
    w->page.numbers[w->page.values++] = number;
    if (w->column->bloom && w->column->type != PARQUET_BOOL) {
        uint64_t word = htole64((uint64_t)number);
        note_hash(w, parquet_xxh64(str_of(&word, w->column->type == PARQUET_I32 ? 4 : 8)));
    }
}

void column_writer_add(ColumnWriter *w, const ParquetValue *value)
{
    if (!value->null && is_bytes(w->column->type)) {
        add_bytes(w, value->bytes);
    } else if (!value->null) {
        add_number(w, value->number);
    }
    w->page.present[w->page.rows++] = value->null ? 0 : 1;
    if (w->page.rows == w->page_rows || w->page.text.len >= PARQUET_PAGE_BYTES) {
        end_page(w);
    }
}

// ---- the chunk ----

static void make_bloom(ColumnWriter *w, Buf *bloom)
{
    if (!w->column->bloom) {
        return;
    }
    for (uint32_t i = 0; w->by_place && i < dictionary_count(w->dictionary); i++) {
        note_hash(w, dictionary_hash(w->dictionary, i));
    }
    if (w->hash_count > 0) {
        bloom_make(bloom, w->hashes, w->hash_count);
    }
}

static bool emit_page(const PackedPage *page, ChunkEntry *chunk, ColumnEmit emit, void *ctx)
{
    chunk->raw += page->raw_len;
    chunk->packed += page->len;
    chunk->headers_crc = parquet_crc32(chunk->headers_crc, page->bytes, page->header_len);
    return emit(ctx, page->bytes, page->len);
}

static bool emit_dictionary(
    ColumnWriter *w, uint64_t at, ChunkEntry *chunk, ColumnEmit emit, void *ctx)
{
    Buf *page = page_packer_page(w->packer);
    for (uint32_t i = 0; i < dictionary_count(w->dictionary); i++) {
        Str value = dictionary_value(w->dictionary, i);
        encode_u32(page, (uint32_t)value.len);
        buf_str(page, value);
    }
    PageKind kind = {
        .dictionary = true,
        .uncompressed = w->column->uncompressed,
        .values = dictionary_count(w->dictionary),
        .encoding = ENCODING_PLAIN,
    };
    PackedPage packed = page_packer_pack(w->packer, &kind);
    chunk->dictionary_at = at;
    bool ok = emit_page(&packed, chunk, emit, ctx);
    free(packed.bytes);
    return ok;
}

static bool emit_pages(ColumnWriter *w, uint64_t at, ChunkEntry *chunk, ColumnEmit emit, void *ctx)
{
    bool ok = true;
    chunk->data_at = at + chunk->packed;
    for (size_t i = 0; i < w->held_count && ok; i++) {
        PageEntry *entry = &chunk->pages[i];
        *entry = w->held[i].entry;
        entry->at = at + chunk->packed;
        chunk->rows += entry->rows;
        chunk->nulls += entry->nulls;
        bounds_merge(&chunk->bounds, &entry->bounds);
        bounds_close(&entry->bounds, w->column->type);
        ok = emit_page(&w->held[i].is, chunk, emit, ctx);
    }
    bounds_close(&chunk->bounds, w->column->type);
    return ok;
}

static void begin_again(ColumnWriter *w)
{
    drop_held(w);
    w->hash_count = 0;
    w->place_pages = w->plain_pages = w->delta_pages = false;
    if (w->dictionary != NULL) {
        dictionary_clear(w->dictionary);
        w->by_place = true;
    }
}

bool column_writer_end(
    ColumnWriter *w, uint64_t at, ColumnEmit emit, void *ctx, Buf *bloom, ChunkEntry *ret)
{
    if (w->page.rows > 0) {
        end_page(w);
    }
    *ret = (ChunkEntry){
        .plain = w->plain_pages,
        .places = w->place_pages,
        .delta = w->delta_pages,
        .page_count = (uint32_t)w->held_count,
        .pages = xcalloc(w->held_count + 1, sizeof *ret->pages),
    };
    bool ok = !w->place_pages || emit_dictionary(w, at, ret, emit, ctx);
    ok = ok && emit_pages(w, at, ret, emit, ctx);
    make_bloom(w, bloom);
    begin_again(w);
    return ok;
}
