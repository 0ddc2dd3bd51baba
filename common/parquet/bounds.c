// SPDX-License-Identifier: Apache-2.0
#define _DEFAULT_SOURCE // endian.h
#include "common/parquet/bounds.h"

#include <endian.h>
#include <string.h>

void bounds_number(Bounds *bounds, int64_t value)
{
    bounds->low = !bounds->any || value < bounds->low ? value : bounds->low;
    bounds->high = !bounds->any || value > bounds->high ? value : bounds->high;
    bounds->any = bounds->least.exact = bounds->greatest.exact = true;
}

static void set_bound(Bound *bound, Str cut, bool exact)
{
    bound->exact = exact;
    bound->len = (uint8_t)cut.len;
    memcpy(bound->bytes, cut.ptr, cut.len);
}

static Str view(const Bound *bound)
{
    return str_of(bound->bytes, bound->len);
}

void bounds_bytes(Bounds *bounds, Str value)
{
    Str cut = str_of(value.ptr != NULL ? value.ptr : "", value.len);
    cut.len = cut.len > BOUND_MAX ? BOUND_MAX : cut.len;
    bool whole = cut.len == value.len;
    if (!bounds->any || str_cmp(cut, view(&bounds->least)) < 0) {
        set_bound(&bounds->least, cut, whole);
    }
    int order = bounds->any ? str_cmp(cut, view(&bounds->greatest)) : 1;
    if (order > 0) {
        set_bound(&bounds->greatest, cut, whole);
    } else if (order == 0 && !whole) {
        bounds->greatest.exact = false; // the same beginning, and more behind it
    }
    bounds->any = true;
}

void bounds_merge(Bounds *into, const Bounds *more)
{
    if (!more->any) {
        return;
    }
    if (!into->any) {
        *into = *more;
        return;
    }
    into->low = more->low < into->low ? more->low : into->low;
    into->high = more->high > into->high ? more->high : into->high;
    if (str_cmp(view(&more->least), view(&into->least)) < 0) {
        into->least = more->least;
    }
    int order = str_cmp(view(&more->greatest), view(&into->greatest));
    if (order > 0) {
        into->greatest = more->greatest;
    } else if (order == 0) {
        into->greatest.exact = into->greatest.exact && more->greatest.exact;
    }
}

// The end of the whole characters.
static size_t utf8_cut(const Bound *bound)
{
    Str rest = view(bound);
    for (size_t step = str_utf8_step(rest); step > 0; step = str_utf8_step(rest)) {
        rest = str_slice(rest, step, rest.len);
    }
    return bound->len - rest.len;
}

// Behind every text that begins with it: its last byte that can be raised is. 0x7e is the last that
// leaves UTF-8 whole.
static bool raise_bound(Bound *bound, uint8_t last)
{
    while (bound->len > 0 && (uint8_t)bound->bytes[bound->len - 1] > last) {
        bound->len--;
    }
    if (bound->len == 0) {
        return false;
    }
    bound->bytes[bound->len - 1]++;
    return true;
}

void bounds_close(Bounds *bounds, ParquetType type)
{
    if (!bounds->any || (type != PARQUET_STRING && type != PARQUET_BYTES)) {
        return;
    }
    if (type == PARQUET_STRING && !bounds->least.exact) {
        bounds->least.len = (uint8_t)utf8_cut(&bounds->least);
    }
    if (!bounds->greatest.exact) {
        bounds->any = raise_bound(&bounds->greatest, type == PARQUET_STRING ? 0x7e : 0xfe);
    }
}

static Str number_bytes(int64_t value, ParquetType type, char space[8])
{
    uint64_t wide = htole64((uint64_t)value);
    memcpy(space, &wide, sizeof wide); // the low half first
    return str_of(space, type == PARQUET_I32 ? 4 : 8);
}

Str bounds_least(const Bounds *bounds, ParquetType type, char space[8])
{
    bool bytes = type == PARQUET_STRING || type == PARQUET_BYTES;
    return bytes ? view(&bounds->least) : number_bytes(bounds->low, type, space);
}

Str bounds_greatest(const Bounds *bounds, ParquetType type, char space[8])
{
    bool bytes = type == PARQUET_STRING || type == PARQUET_BYTES;
    return bytes ? view(&bounds->greatest) : number_bytes(bounds->high, type, space);
}
