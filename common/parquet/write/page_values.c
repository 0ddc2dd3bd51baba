// SPDX-License-Identifier: Apache-2.0
#define _DEFAULT_SOURCE // endian.h
#include "common/parquet/write/page_values.h"

#include <assert.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"
#include "common/parquet/write/encode.h"

void page_values_init(PageValues *p, ParquetType type, uint32_t rows_max, bool by_place)
{
    *p = (PageValues){.type = type};
    p->present = xmalloc(rows_max * sizeof *p->present);
    buf_init(&p->text, PARQUET_PAGE_BYTES + PARQUET_VALUE_MAX);
    if (is_bytes(type)) {
        p->ends = xmalloc(rows_max * sizeof *p->ends);
    } else {
        p->numbers = xmalloc(rows_max * sizeof *p->numbers);
    }
    if (by_place) {
        p->places = xmalloc(rows_max * sizeof *p->places);
        p->seen = xmalloc(DICTIONARY_ENTRIES_MAX);
    }
}

void page_values_done(PageValues *p)
{
    buf_done(&p->text);
    free(p->present);
    free(p->numbers);
    free(p->ends);
    free(p->places);
    free(p->seen);
}

void page_values_clear(PageValues *p)
{
    p->rows = p->values = 0;
    p->place_bytes = 0;
    buf_clear(&p->text);
}

void page_values_add_text(PageValues *p, Str value)
{
    bool fits = buf_str(&p->text, value);
    assert(fits && "a page ends before its text is full");
    (void)fits;
    p->ends[p->values++] = (uint32_t)p->text.len;
}

void page_values_resolve(PageValues *p, const Dictionary *dictionary)
{
    uint32_t values = p->values;
    for (p->values = 0; p->values < values;) {
        page_values_add_text(p, dictionary_value(dictionary, p->places[p->values]));
    }
    p->place_bytes = 0;
}

static Str text_at(const PageValues *p, uint32_t i)
{
    uint32_t from = i > 0 ? p->ends[i - 1] : 0;
    return str_of(p->text.ptr + from, p->ends[i] - from);
}

// Each different value of the page once.
static void widen_by_places(PageValues *p, const Dictionary *dictionary, Bounds *bounds)
{
    memset(p->seen, 0, dictionary_count(dictionary));
    for (uint32_t i = 0; i < p->values; i++) {
        uint32_t place = p->places[i];
        if (p->seen[place] == 0) {
            p->seen[place] = 1;
            bounds_bytes(bounds, dictionary_value(dictionary, place));
        }
    }
}

Bounds page_values_bounds(PageValues *p, const Dictionary *dictionary)
{
    Bounds bounds = {0};
    if (dictionary != NULL) {
        widen_by_places(p, dictionary, &bounds);
        return bounds;
    }
    for (uint32_t i = 0; i < p->values; i++) {
        if (is_bytes(p->type)) {
            bounds_bytes(&bounds, text_at(p, i));
        } else {
            bounds_number(&bounds, p->numbers[i]);
        }
    }
    return bounds;
}

void page_values_put_levels(const PageValues *p, Buf *out)
{
    size_t from = out->len;
    encode_u32(out, 0);
    encode_hybrid(out, p->present, p->rows, 1);
    uint32_t len = htole32((uint32_t)(out->len - from - sizeof len));
    memcpy(out->ptr + from, &len, sizeof len);
}

void page_values_put_places(const PageValues *p, const Dictionary *dictionary, Buf *out)
{
    unsigned bits = encode_width(dictionary_count(dictionary) - 1);
    buf_char(out, (char)(uint8_t)bits);
    encode_hybrid(out, p->places, p->values, bits);
}

static void put_bools(const PageValues *p, Buf *out)
{
    for (uint32_t i = 0; i < p->values; i += 8) {
        unsigned byte = 0;
        for (uint32_t k = 0; k < 8 && i + k < p->values; k++) {
            byte |= (unsigned)(p->numbers[i + k] != 0) << k;
        }
        buf_char(out, (char)(uint8_t)byte);
    }
}

static void put_texts(const PageValues *p, Buf *out)
{
    for (uint32_t i = 0; i < p->values; i++) {
        Str value = text_at(p, i);
        encode_u32(out, (uint32_t)value.len);
        buf_str(out, value);
    }
}

void page_values_put_plain(const PageValues *p, Buf *out)
{
    switch (p->type) {
    case PARQUET_BOOL:
        put_bools(p, out);
        return;
    case PARQUET_I32:
        for (uint32_t i = 0; i < p->values; i++) {
            encode_u32(out, (uint32_t)p->numbers[i]);
        }
        return;
    case PARQUET_I64:
        for (uint32_t i = 0; i < p->values; i++) {
            uint64_t word = htole64((uint64_t)p->numbers[i]);
            buf_append(out, &word, sizeof word);
        }
        return;
    case PARQUET_STRING:
    case PARQUET_BYTES:
        put_texts(p, out);
    }
}
