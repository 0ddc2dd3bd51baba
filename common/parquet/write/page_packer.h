// SPDX-License-Identifier: Apache-2.0
// A page's bytes as they stand in the file: packed, with its header and CRC-32. One packer for all
// columns of a writer.
#pragma once

#include "common/base/buf.h"

typedef struct PagePacker PagePacker;

typedef struct PackedPage {
    char *bytes; // header and page; the receiver frees it
    uint32_t len, header_len;
    uint32_t raw_len; // header and page before packing
} PackedPage;

typedef struct PageKind {
    bool dictionary, uncompressed;
    uint32_t values; // nulls too
    int encoding;
} PageKind;

PagePacker *page_packer_new(void);
void page_packer_free(PagePacker *packer); // NULL-safe
// Where the next page is to be put: empty, PAGE_MAX at most.
Buf *page_packer_page(PagePacker *packer);
uint64_t page_packer_packed(const PagePacker *packer); // bytes of all pages so far
// Packs what was put there.
PackedPage page_packer_pack(PagePacker *packer, const PageKind *kind);
