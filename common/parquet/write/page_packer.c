// SPDX-License-Identifier: Apache-2.0
#include "common/parquet/write/page_packer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "common/base/arena.h"
#include "common/parquet/checksum.h"
#include "common/parquet/format.h"
#include "common/parquet/write/thrift_writer.h"

enum { LEVEL = 1, HEADER_MAX = 128 };

struct PagePacker {
    ZSTD_CCtx *zstd;
    Buf page, packed, header;
    uint64_t bytes;
};

PagePacker *page_packer_new(void)
{
    PagePacker *packer = xcalloc(1, sizeof *packer);
    packer->zstd = ZSTD_createCCtx();
    if (packer->zstd == NULL) {
        abort(); // out of memory, as xmalloc
    }
    ZSTD_CCtx_setParameter(packer->zstd, ZSTD_c_compressionLevel, LEVEL);
    buf_init(&packer->page, PAGE_MAX);
    buf_init(&packer->packed, ZSTD_compressBound(PAGE_MAX));
    buf_init(&packer->header, HEADER_MAX);
    return packer;
}

void page_packer_free(PagePacker *packer)
{
    if (packer != NULL) {
        ZSTD_freeCCtx(packer->zstd);
        buf_done(&packer->page);
        buf_done(&packer->packed);
        buf_done(&packer->header);
        free(packer);
    }
}

static Str compress(PagePacker *packer, Str page)
{
    size_t bound = ZSTD_compressBound(page.len);
    buf_clear(&packer->packed);
    if (!buf_reserve(&packer->packed, bound)) {
        abort(); // a page over PAGE_MAX, which no column makes
    }
    size_t len = ZSTD_compress2(packer->zstd, packer->packed.ptr, bound, page.ptr, page.len);
    if (ZSTD_isError(len)) {
        abort(); // with room for the worst case only memory can fail
    }
    return str_of(packer->packed.ptr, len);
}

static Str make_header(PagePacker *packer, const PageKind *kind, Str page, Str packed)
{
    buf_clear(&packer->header);
    ThriftWriter w = {.out = &packer->header};
    thrift_i32(&w, PAGE_TYPE, kind->dictionary ? PAGE_DICTIONARY : PAGE_DATA);
    thrift_i32(&w, PAGE_RAW, (int64_t)page.len);
    thrift_i32(&w, PAGE_PACKED, (int64_t)packed.len);
    thrift_i32(&w, PAGE_CRC, (int32_t)parquet_crc32(0, packed.ptr, packed.len));
    thrift_struct(&w, kind->dictionary ? PAGE_OF_DICTIONARY : PAGE_OF_DATA);
    thrift_i32(&w, DATA_VALUES, kind->values);
    thrift_i32(&w, DATA_ENCODING, kind->encoding);
    if (!kind->dictionary) {
        thrift_i32(&w, DATA_DEFINITION, ENCODING_RLE);
        thrift_i32(&w, DATA_REPETITION, ENCODING_RLE);
    }
    thrift_leave(&w);
    thrift_leave(&w);
    return buf_view(&packer->header);
}

uint64_t page_packer_packed(const PagePacker *packer)
{
    return packer->bytes;
}

Buf *page_packer_page(PagePacker *packer)
{
    buf_clear(&packer->page);
    return &packer->page;
}

PackedPage page_packer_pack(PagePacker *packer, const PageKind *kind)
{
    assert(!packer->page.full && "a page's limits keep it below PAGE_MAX");
    Str page = buf_view(&packer->page);
    Str packed = kind->uncompressed ? page : compress(packer, page);
    Str header = make_header(packer, kind, page, packed);
    PackedPage done = {
        .bytes = xmalloc(header.len + packed.len),
        .len = (uint32_t)(header.len + packed.len),
        .header_len = (uint32_t)header.len,
        .raw_len = (uint32_t)(header.len + page.len),
    };
    packer->bytes += done.len;
    memcpy(done.bytes, header.ptr, header.len);
    memcpy(done.bytes + header.len, packed.ptr, packed.len);
    return done;
}
