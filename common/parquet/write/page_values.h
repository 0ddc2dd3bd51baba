// SPDX-License-Identifier: Apache-2.0
// The values of one page before they are encoded.
#pragma once

#include "common/base/buf.h"
#include "common/parquet/format.h"
#include "common/parquet/write/dictionary.h"

typedef struct PageValues {
    ParquetType type;
    uint32_t *present; // for each row: 1, it has a value
    uint32_t rows, values;
    int64_t *numbers;     // of BOOL, I32, I64
    Buf text;             // of STRING and BYTES that go without places: back to back
    uint32_t *ends;       // where each ends in `text`
    uint32_t *places;     // of those that go by places in a dictionary
    uint64_t place_bytes; // what they would have in `text`
    uint8_t *seen;        // scratch: dictionary entries of this page
} PageValues;

void page_values_init(PageValues *p, ParquetType type, uint32_t rows_max, bool by_place);
void page_values_done(PageValues *p);
void page_values_clear(PageValues *p);
void page_values_add_text(PageValues *p, Str value); // counts it as one more value
// Takes the values by place as text.
void page_values_resolve(PageValues *p, const Dictionary *dictionary);
// Least and greatest, not closed; by places when `dictionary` is given.
Bounds page_values_bounds(PageValues *p, const Dictionary *dictionary);
void page_values_put_levels(const PageValues *p, Buf *out);
void page_values_put_plain(const PageValues *p, Buf *out);
void page_values_put_places(const PageValues *p, const Dictionary *dictionary, Buf *out);
