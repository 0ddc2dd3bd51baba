// SPDX-License-Identifier: Apache-2.0
// The values of a page at hand. Foreign bytes: a page is decoded whole and checked before its first
// value is given.
#pragma once

#include "common/parquet/read/page_reader.h"

typedef struct PageDecoder PageDecoder;

PageDecoder *page_decoder_new(const ParquetColumn *column); // borrows it
void page_decoder_free(PageDecoder *d);                     // NULL-safe
void page_decoder_begin(PageDecoder *d);                    // of another chunk: no dictionary
// Where the next page is to be unpacked.
Buf *page_decoder_buffer(PageDecoder *d, bool dictionary);
bool page_decoder_has_dictionary(const PageDecoder *d);
// false: it cannot be read.
bool page_decoder_dictionary(PageDecoder *d, const ReadPage *page);
bool page_decoder_data(PageDecoder *d, const ReadPage *page, uint32_t *ret_values);
// The next of the page's rows; the caller counts them. Borrowed until the next page.
void page_decoder_next(PageDecoder *d, ParquetValue *ret);
// Passes over so many rows, which the page has.
void page_decoder_skip(PageDecoder *decoder, uint32_t rows);
