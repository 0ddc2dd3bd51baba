// SPDX-License-Identifier: Apache-2.0
#include "common/parquet/read/column_reader.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"
#include "common/parquet/read/page_decoder.h"
#include "common/parquet/read/page_index.h"

struct ColumnReader {
    const ParquetColumn *column;
    PageReader *pages;
    const ChunkInfo *chunk;
    PageDecoder *decoder;
    uint64_t at;    // the next page
    uint64_t nulls; // of the pages read
    uint32_t headers_crc;
    bool jumped;         // not every page was read, so neither is known
    uint64_t first, row; // of the page at hand; of the value at hand
    uint32_t rows;       // of the page at hand; 0: there is none
    PageLocations locations;
    bool located;
};

ColumnReader *column_reader_new(const ParquetColumn *column, PageReader *pages)
{
    ColumnReader *r = xcalloc(1, sizeof *r);
    r->column = column;
    r->pages = pages;
    r->decoder = page_decoder_new(column);
    return r;
}

void column_reader_free(ColumnReader *r)
{
    if (r != NULL) {
        page_decoder_free(r->decoder);
        page_locations_done(&r->locations);
        free(r);
    }
}

void column_reader_begin(ColumnReader *r, const ChunkInfo *chunk)
{
    r->chunk = chunk;
    r->at = chunk->at;
    r->nulls = 0;
    r->headers_crc = 0;
    r->jumped = r->located = false;
    r->first = r->row = 0;
    r->rows = 0;
    page_decoder_begin(r->decoder);
}

static bool wrap(const ColumnReader *r, uint64_t at, Error *err)
{
    return error_wrap(
        err, "parquet: column '%s', page at %llu", r->column->name, (unsigned long long)at);
}

// A chunk that was read to its end is what the footer says.
static bool check_end(const ColumnReader *r, Error *err)
{
    if (r->jumped) {
        return true;
    }
    if (r->at != r->chunk->end || r->nulls != r->chunk->nulls ||
        r->headers_crc != r->chunk->headers_crc) {
        return error_set(
            err, ERROR_PERMANENT,
            "parquet: column '%s', chunk at %llu: its pages are not those of the footer",
            r->column->name, (unsigned long long)r->chunk->at);
    }
    return true;
}

static bool read_page(ColumnReader *r, uint64_t *at, ReadPage *ret, Error *err)
{
    ret->header_crc = r->headers_crc;
    Buf *into = page_decoder_buffer(r->decoder, *at < r->chunk->data_at);
    if (!page_reader_read(r->pages, *at, r->chunk->end, r->chunk->codec, into, ret, err)) {
        return wrap(r, *at, err);
    }
    r->headers_crc = ret->header_crc;
    *at = ret->end;
    return true;
}

static bool read_dictionary(ColumnReader *r, Error *err)
{
    uint64_t at = r->chunk->at;
    ReadPage page;
    if (!read_page(r, &at, &page, err)) {
        return false;
    }
    if (at != r->chunk->data_at || !page_decoder_dictionary(r->decoder, &page)) {
        error_set(err, ERROR_PERMANENT, "a dictionary that cannot be read");
        return wrap(r, r->chunk->at, err);
    }
    return true;
}

static bool next_page(ColumnReader *r, Error *err)
{
    r->first += r->rows;
    r->rows = 0;
    if (r->chunk->at < r->chunk->data_at && !page_decoder_has_dictionary(r->decoder)) {
        if (!read_dictionary(r, err)) {
            return false;
        }
        r->at = r->at > r->chunk->data_at ? r->at : r->chunk->data_at;
    }
    uint64_t at = r->at;
    ReadPage page;
    if (!read_page(r, &r->at, &page, err)) {
        return false;
    }
    uint32_t values;
    if (page.values > r->chunk->rows - r->first || !page_decoder_data(r->decoder, &page, &values)) {
        error_set(err, ERROR_PERMANENT, "values that cannot be read");
        return wrap(r, at, err);
    }
    r->rows = page.values;
    r->nulls += page.values - values;
    return r->first + r->rows < r->chunk->rows || check_end(r, err);
}

bool column_reader_value(ColumnReader *r, ParquetValue *ret, Error *err)
{
    if (r->row == r->first + r->rows && !next_page(r, err)) {
        return false;
    }
    page_decoder_next(r->decoder, ret);
    r->row++;
    return true;
}

// To the page that has the row, if the file says which one that is.
static bool jump(ColumnReader *r, uint64_t row, Error *err)
{
    if (!r->located) {
        if (!page_locations_read(&r->locations, r->chunk, r->pages, err)) {
            return error_wrap(err, "parquet: column '%s'", r->column->name);
        }
        r->located = true;
    }
    size_t i = page_locations_find(&r->locations, row);
    if (i < r->locations.count && r->locations.pages[i].first > r->row) {
        r->jumped = true;
        r->at = r->locations.pages[i].at;
        r->first = r->row = r->locations.pages[i].first;
        r->rows = 0;
    }
    return true;
}

bool column_reader_seek(ColumnReader *r, uint64_t row, Error *err)
{
    if (row >= r->first + r->rows && !jump(r, row, err)) {
        return false;
    }
    while (r->row < row) {
        if (r->row == r->first + r->rows && !next_page(r, err)) {
            return false;
        }
        uint64_t end = r->first + r->rows < row ? r->first + r->rows : row;
        page_decoder_skip(r->decoder, (uint32_t)(end - r->row));
        r->row = end;
    }
    return true;
}
