// SPDX-License-Identifier: Apache-2.0
#include "common/parquet/read/page_decoder.h"

#include <stdlib.h>

#include "common/base/arena.h"
#include "common/parquet/read/decode.h"

struct PageDecoder {
    const ParquetColumn *column;
    Buf page, dictionary_page;
    Str *dictionary;
    uint32_t dictionary_count;
    bool has_dictionary;
    uint32_t room;     // rows that the arrays take
    uint32_t *present; // for each row: 1, it has a value
    uint32_t *places;  // scratch
    int64_t *numbers;
    Str *texts;
    uint32_t row, value; // at hand
    bool some_null;      // of the page at hand; else `present` is not looked at
};

PageDecoder *page_decoder_new(const ParquetColumn *column)
{
    PageDecoder *d = xcalloc(1, sizeof *d);
    d->column = column;
    buf_init(&d->page, PAGE_MAX);
    buf_init(&d->dictionary_page, PAGE_MAX);
    return d;
}

void page_decoder_free(PageDecoder *d)
{
    if (d == NULL) {
        return;
    }
    buf_done(&d->page);
    buf_done(&d->dictionary_page);
    free(d->dictionary);
    free(d->present);
    free(d->places);
    free(d->numbers);
    free(d->texts);
    free(d);
}

void page_decoder_begin(PageDecoder *d)
{
    d->has_dictionary = false;
}

Buf *page_decoder_buffer(PageDecoder *d, bool dictionary)
{
    return dictionary ? &d->dictionary_page : &d->page;
}

bool page_decoder_has_dictionary(const PageDecoder *d)
{
    return d->has_dictionary;
}

// ---- values ----

static bool take_text(const PageDecoder *d, Str *rest, Str *ret)
{
    uint32_t len;
    if (!decode_u32(rest, &len) || len > rest->len || len > PARQUET_VALUE_MAX) {
        return false;
    }
    *ret = str_of(rest->ptr, len);
    rest->ptr += len;
    rest->len -= len;
    return d->column->type == PARQUET_BYTES || is_text(*ret);
}

bool page_decoder_dictionary(PageDecoder *d, const ReadPage *page)
{
    if (!page->dictionary || !is_bytes(d->column->type) || page->encoding != ENCODING_PLAIN) {
        return false;
    }
    Str rest = page->body;
    d->dictionary = xrealloc(d->dictionary, ((size_t)page->values + 1) * sizeof *d->dictionary);
    for (uint32_t i = 0; i < page->values; i++) {
        if (!take_text(d, &rest, &d->dictionary[i])) {
            return false;
        }
    }
    d->dictionary_count = page->values;
    d->has_dictionary = true;
    return rest.len == 0;
}

static bool take_places(PageDecoder *d, Str *rest, uint32_t count)
{
    if (!d->has_dictionary || rest->len == 0) {
        return false;
    }
    unsigned bits = (uint8_t)*rest->ptr;
    *rest = str_slice(*rest, 1, rest->len);
    if (!decode_hybrid(rest, d->places, count, bits)) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (d->places[i] >= d->dictionary_count) {
            return false;
        }
        d->texts[i] = d->dictionary[d->places[i]];
    }
    return true;
}

static bool take_bools(PageDecoder *d, Str *rest, uint32_t count)
{
    size_t len = ((size_t)count + 7) / 8;
    if (len > rest->len) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        d->numbers[i] = (uint8_t)rest->ptr[i / 8] >> (i % 8) & 1;
    }
    *rest = str_slice(*rest, len, rest->len);
    return true;
}

static bool take_i32s(PageDecoder *d, Str *rest, uint32_t count)
{
    bool narrow = d->column->logical == PARQUET_I16;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t word;
        if (!decode_u32(rest, &word)) {
            return false;
        }
        int32_t number = (int32_t)word;
        if (narrow && (number < INT16_MIN || number > INT16_MAX)) {
            return false;
        }
        d->numbers[i] = number;
    }
    return true;
}

static bool take_i64s(PageDecoder *d, Str *rest, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint64_t word;
        if (!decode_u64(rest, &word)) {
            return false;
        }
        d->numbers[i] = (int64_t)word;
    }
    return true;
}

static bool take_plain(PageDecoder *d, Str *rest, uint32_t count)
{
    switch (d->column->type) {
    case PARQUET_BOOL:
        return take_bools(d, rest, count);
    case PARQUET_I32:
        return take_i32s(d, rest, count);
    case PARQUET_I64:
        return take_i64s(d, rest, count);
    case PARQUET_STRING:
    case PARQUET_BYTES:
        break;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!take_text(d, rest, &d->texts[i])) {
            return false;
        }
    }
    return true;
}

static bool take_values(PageDecoder *d, int encoding, Str *rest, uint32_t count)
{
    switch (encoding) {
    case ENCODING_PLAIN:
        return take_plain(d, rest, count);
    case ENCODING_PLACES:
        return is_bytes(d->column->type) && take_places(d, rest, count);
    case ENCODING_DELTA:
        return d->column->type == PARQUET_I64 && decode_delta(rest, d->numbers, count);
    default:
        return false;
    }
}

// ---- rows ----

static void make_room(PageDecoder *d, uint32_t rows)
{
    if (rows <= d->room) {
        return;
    }
    d->room = rows;
    d->present = xrealloc(d->present, rows * sizeof *d->present);
    if (is_bytes(d->column->type)) {
        d->places = xrealloc(d->places, rows * sizeof *d->places);
        d->texts = xrealloc(d->texts, rows * sizeof *d->texts);
    } else {
        d->numbers = xrealloc(d->numbers, rows * sizeof *d->numbers);
    }
}

static bool take_levels(PageDecoder *d, Str *rest, uint32_t rows, uint32_t *ret_values)
{
    uint32_t len, values = 0;
    if (!d->column->optional) {
        d->some_null = false;
        *ret_values = rows;
        return true;
    }
    if (!decode_u32(rest, &len) || len > rest->len) {
        return false;
    }
    Str levels = str_of(rest->ptr, len);
    *rest = str_slice(*rest, len, rest->len);
    if (!decode_hybrid(&levels, d->present, rows, 1) || levels.len > 0) {
        return false;
    }
    for (uint32_t i = 0; i < rows; i++) {
        values += d->present[i];
    }
    d->some_null = values < rows;
    *ret_values = values;
    return true;
}

bool page_decoder_data(PageDecoder *d, const ReadPage *page, uint32_t *ret_values)
{
    Str rest = page->body;
    make_room(d, page->values);
    d->row = d->value = 0;
    return !page->dictionary && take_levels(d, &rest, page->values, ret_values) &&
           take_values(d, page->encoding, &rest, *ret_values) && rest.len == 0;
}

void page_decoder_next(PageDecoder *d, ParquetValue *ret)
{
    bool null = d->some_null && d->present[d->row] == 0;
    d->row++;
    *ret = (ParquetValue){.null = null, .bytes = STR_EMPTY};
    if (null) {
        return;
    }
    if (is_bytes(d->column->type)) {
        ret->bytes = d->texts[d->value++];
    } else {
        ret->number = d->numbers[d->value++];
    }
}

void page_decoder_skip(PageDecoder *d, uint32_t rows)
{
    uint32_t values = rows;
    for (uint32_t i = 0; d->some_null && i < rows; i++) {
        values -= 1 - d->present[d->row + i];
    }
    d->row += rows;
    d->value += values;
}
