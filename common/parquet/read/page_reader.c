// SPDX-License-Identifier: Apache-2.0
#include "common/parquet/read/page_reader.h"

#include <stdlib.h>
#include <zstd.h>

#include "common/base/arena.h"
#include "common/parquet/checksum.h"
#include "common/parquet/read/thrift_reader.h"

enum { HEADER_FIRST = 256, HEADER_MAX = 16 * 1024 };

struct PageReader {
    ParquetSource source;
    void *ctx;
    ZSTD_DCtx *zstd;
    Buf header, packed;
    uint64_t count;
};

PageReader *page_reader_new(ParquetSource source, void *ctx)
{
    PageReader *r = xcalloc(1, sizeof *r);
    r->source = source;
    r->ctx = ctx;
    r->zstd = ZSTD_createDCtx();
    if (r->zstd == NULL) {
        abort(); // out of memory, as xmalloc
    }
    buf_init(&r->header, HEADER_MAX);
    buf_init(&r->packed, PAGE_MAX);
    return r;
}

void page_reader_free(PageReader *r)
{
    if (r != NULL) {
        ZSTD_freeDCtx(r->zstd);
        buf_done(&r->header);
        buf_done(&r->packed);
        free(r);
    }
}

uint64_t page_reader_count(const PageReader *r)
{
    return r->count;
}

// Exactly `len` bytes; the caller has checked that the file has them.
static bool fetch(PageReader *r, uint64_t at, size_t len, Buf *into, Error *err)
{
    buf_clear(into);
    if (!buf_reserve(into, len)) {
        return error_set(err, ERROR_PERMANENT, "%zu bytes, over the limit", len);
    }
    if (!r->source(r->ctx, at, into->ptr, len, err)) {
        return false;
    }
    into->len = len;
    return true;
}

bool page_reader_part(PageReader *r, const TailPart *part, Buf *into, Error *err)
{
    if (!fetch(r, part->at, part->len, into, err)) {
        return false;
    }
    return parquet_crc32(0, into->ptr, into->len) == part->crc ||
           error_set(
               err, ERROR_PERMANENT, "index or filter at %llu was changed",
               (unsigned long long)part->at);
}

// ---- headers ----

typedef struct Header {
    int64_t type, raw, packed, crc, values, encoding, definition, repetition;
    bool has_crc, described;
    size_t len;
} Header;

static void read_kind(ThriftReader *in, const ThriftField *field, Header *h)
{
    ThriftField inner = {0};
    thrift_is_struct(in, field);
    while (thrift_next(in, &inner)) {
        switch (inner.id) {
        case DATA_VALUES:
            h->values = thrift_get_int(in, &inner);
            break;
        case DATA_ENCODING:
            h->encoding = thrift_get_int(in, &inner);
            break;
        case DATA_DEFINITION:
            h->definition = thrift_get_int(in, &inner);
            break;
        case DATA_REPETITION:
            h->repetition = thrift_get_int(in, &inner);
            break;
        default:
            thrift_skip(in, &inner);
        }
    }
    h->described = true;
}

static bool read_header(Str bytes, Header *ret)
{
    ThriftReader in = {.rest = bytes};
    ThriftField field = {0};
    *ret = (Header){
        .type = -1,
        .raw = -1,
        .packed = -1,
        .values = -1,
        .encoding = -1,
        .definition = -1,
        .repetition = -1};
    while (thrift_next(&in, &field)) {
        if (field.id == PAGE_TYPE) {
            ret->type = thrift_get_int(&in, &field);
        } else if (field.id == PAGE_RAW) {
            ret->raw = thrift_get_int(&in, &field);
        } else if (field.id == PAGE_PACKED) {
            ret->packed = thrift_get_int(&in, &field);
        } else if (field.id == PAGE_CRC) {
            ret->crc = thrift_get_int(&in, &field);
            ret->has_crc = true;
        } else if (field.id == (ret->type == PAGE_DICTIONARY ? PAGE_OF_DICTIONARY : PAGE_OF_DATA)) {
            read_kind(&in, &field, ret);
        } else {
            thrift_skip(&in, &field);
        }
    }
    ret->len = bytes.len - in.rest.len;
    return !in.bad;
}

// What is wrong with it; NULL: nothing.
static const char *check_header(const Header *h, uint64_t room, int codec)
{
    if (h->type != PAGE_DATA && h->type != PAGE_DICTIONARY) {
        return "a kind of page that is not read";
    }
    if (!h->described || !h->has_crc) {
        return "a page without description or checksum";
    }
    if (h->raw < 0 || h->raw > PAGE_MAX || h->packed < 0 || (uint64_t)h->packed > room - h->len ||
        h->packed > PAGE_MAX || (codec == CODEC_NONE && h->raw != h->packed)) {
        return "a page's size";
    }
    if (h->values < 0 || h->values > PAGE_ROWS_MAX || (h->type == PAGE_DATA && h->values == 0)) {
        return "a page's number of values";
    }
    if (h->type == PAGE_DATA && (h->definition != ENCODING_RLE || h->repetition != ENCODING_RLE)) {
        return "an encoding of levels that is not read";
    }
    return NULL;
}

// Headers of ours have some 30 bytes, others may have statistics in them.
static bool fetch_header(PageReader *r, uint64_t at, uint64_t room, Header *ret, Error *err)
{
    for (size_t most = HEADER_FIRST;; most = HEADER_MAX) {
        size_t len = room < most ? (size_t)room : most;
        if (!fetch(r, at, len, &r->header, err)) {
            return false;
        }
        if (read_header(buf_view(&r->header), ret)) {
            return true;
        }
        if (len == room || most == HEADER_MAX) {
            return error_set(err, ERROR_PERMANENT, "a page's header");
        }
    }
}

// ---- pages ----

static bool unpack(PageReader *r, const Header *h, Buf *into, Error *err)
{
    buf_clear(into);
    if (!buf_reserve(into, (size_t)h->raw)) {
        return error_set(err, ERROR_PERMANENT, "a page over the limit");
    }
    size_t len =
        ZSTD_decompressDCtx(r->zstd, into->ptr, (size_t)h->raw, r->packed.ptr, r->packed.len);
    if (ZSTD_isError(len) || len != (size_t)h->raw) {
        return error_set(err, ERROR_PERMANENT, "a page that zstd does not unpack");
    }
    into->len = len;
    return true;
}

bool page_reader_read(
    PageReader *r, uint64_t at, uint64_t end, int codec, Buf *into, ReadPage *ret, Error *err)
{
    Header h;
    if (at >= end) {
        return error_set(err, ERROR_PERMANENT, "a page is missing");
    }
    if (!fetch_header(r, at, end - at, &h, err)) {
        return false;
    }
    const char *wrong = check_header(&h, end - at, codec);
    if (wrong != NULL) {
        return error_set(err, ERROR_PERMANENT, "%s", wrong);
    }
    Buf *packed = codec == CODEC_NONE ? into : &r->packed;
    if (!fetch(r, at + h.len, (size_t)h.packed, packed, err)) {
        return false;
    }
    if (parquet_crc32(0, packed->ptr, packed->len) != (uint32_t)h.crc) {
        return error_set(err, ERROR_PERMANENT, "a page's checksum is wrong");
    }
    if (codec != CODEC_NONE && !unpack(r, &h, into, err)) {
        return false;
    }
    r->count++;
    *ret = (ReadPage){
        .dictionary = h.type == PAGE_DICTIONARY,
        .values = (uint32_t)h.values,
        .encoding = (int)h.encoding,
        .body = buf_view(into),
        .end = at + h.len + (uint64_t)h.packed,
        .header_crc = parquet_crc32(ret->header_crc, r->header.ptr, h.len),
    };
    return true;
}
