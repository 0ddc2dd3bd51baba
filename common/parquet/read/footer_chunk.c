// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "common/parquet/read/footer_pass.h"

void footer_pair(FooterPass *p, Str *ret_name, Str *ret_value)
{
    ThriftField field = {0};
    *ret_name = *ret_value = STR_EMPTY;
    while (thrift_next(&p->in, &field)) {
        if (field.id == 1) {
            *ret_name = thrift_get_bytes(&p->in, &field);
        } else if (field.id == 2) {
            *ret_value = thrift_get_bytes(&p->in, &field);
        } else {
            thrift_skip(&p->in, &field);
        }
    }
}

bool footer_hex(Str text, uint32_t *ret)
{
    uint32_t value = 0;
    for (size_t i = 0; i < text.len; i++) {
        const char *digits = "0123456789abcdef";
        const char *digit = text.ptr[i] != '\0' ? strchr(digits, text.ptr[i]) : NULL;
        if (digit == NULL) {
            return false;
        }
        value = value << 4 | (uint32_t)(digit - digits);
    }
    *ret = value;
    return text.len == CRC_HEX;
}

static void read_chunk_pairs(FooterPass *p, const ThriftField *field, ChunkInfo *chunk)
{
    size_t count = thrift_get_list(&p->in, field, THRIFT_STRUCT, PARQUET_METADATA_MAX);
    uint32_t *into[CHUNK_CRCS] = {
        &chunk->bloom.crc, &chunk->index.crc, &chunk->offsets.crc, &chunk->headers_crc};
    bool found = false;
    for (size_t i = 0; i < count && !p->in.bad; i++) {
        Str name, value;
        footer_pair(p, &name, &value);
        if (!str_eq(name, STR(CHUNK_CRC_NAME))) {
            continue;
        }
        found = true;
        footer_require(p, value.len == CRC_HEX * CHUNK_CRCS, "a chunk's checksums");
        for (size_t k = 0; k < CHUNK_CRCS && !p->in.bad; k++) {
            footer_require(
                p, footer_hex(str_slice(value, CRC_HEX * k, CRC_HEX * (k + 1)), into[k]),
                "a chunk's checksums");
        }
    }
    footer_require(p, found, "a chunk without checksums");
}

static void read_statistics(FooterPass *p, const ThriftField *field, ChunkInfo *chunk)
{
    ThriftField inner = {0};
    bool least = false, greatest = false;
    thrift_is_struct(&p->in, field);
    while (thrift_next(&p->in, &inner)) {
        switch (inner.id) {
        case STATISTICS_NULLS:
            chunk->nulls = (uint64_t)thrift_get_int(&p->in, &inner);
            break;
        case STATISTICS_MAX:
            chunk->greatest = thrift_get_bytes(&p->in, &inner);
            greatest = true;
            break;
        case STATISTICS_MIN:
            chunk->least = thrift_get_bytes(&p->in, &inner);
            least = true;
            break;
        default:
            thrift_skip(&p->in, &inner);
        }
    }
    chunk->bounded = least && greatest;
}

typedef struct ChunkMeta {
    int64_t type, codec, rows, packed, data_at, dictionary_at;
    bool checked; // it has checksums
} ChunkMeta;

static void read_meta_field(
    FooterPass *p, const ThriftField *field, ChunkInfo *chunk, ChunkMeta *meta)
{
    switch (field->id) {
    case META_TYPE:
        meta->type = thrift_get_int(&p->in, field);
        break;
    case META_CODEC:
        meta->codec = thrift_get_int(&p->in, field);
        break;
    case META_VALUES:
        meta->rows = thrift_get_int(&p->in, field);
        break;
    case META_PACKED:
        meta->packed = thrift_get_int(&p->in, field);
        break;
    case META_DATA_AT:
        meta->data_at = thrift_get_int(&p->in, field);
        break;
    case META_DICTIONARY_AT:
        meta->dictionary_at = thrift_get_int(&p->in, field);
        break;
    case META_PAIRS:
        read_chunk_pairs(p, field, chunk);
        meta->checked = true;
        break;
    case META_STATISTICS:
        read_statistics(p, field, chunk);
        break;
    case META_BLOOM_AT:
        chunk->bloom.at = (uint64_t)thrift_get_int(&p->in, field);
        break;
    case META_BLOOM_LEN:
        chunk->bloom.len = (uint32_t)thrift_get_int(&p->in, field);
        break;
    default:
        thrift_skip(&p->in, field);
    }
}

static void place_chunk(FooterPass *p, ChunkInfo *chunk, const ChunkMeta *meta)
{
    int64_t end = (int64_t)p->pages_end;
    int64_t at = meta->dictionary_at > 0 ? meta->dictionary_at : meta->data_at;
    bool placed = at >= (int64_t)strlen(PARQUET_MAGIC) && at <= meta->data_at && at < end &&
                  meta->packed > 0 && meta->packed <= end - at && meta->data_at < at + meta->packed;
    footer_require(p, placed, "a chunk out of the file");
    footer_require(
        p, meta->codec == CODEC_NONE || meta->codec == CODEC_ZSTD, "a codec that is not read");
    footer_require(p, meta->rows >= 0, "a negative number");
    if (!p->in.bad) {
        chunk->codec = (int)meta->codec;
        chunk->rows = (uint64_t)meta->rows;
        chunk->at = (uint64_t)at;
        chunk->data_at = (uint64_t)meta->data_at;
        chunk->end = (uint64_t)(at + meta->packed);
    }
}

static void check_part(FooterPass *p, const TailPart *part)
{
    footer_require(
        p, part->len == 0 || (part->at < p->pages_end && part->len <= p->pages_end - part->at),
        "an index out of the file");
}

static int physical_of(ParquetType type)
{
    return is_bytes(type)        ? PHYSICAL_BYTES
           : type == PARQUET_I64 ? PHYSICAL_I64
           : type == PARQUET_I32 ? PHYSICAL_I32
                                 : PHYSICAL_BOOL;
}

static void read_meta(
    FooterPass *p, const ThriftField *field, ChunkInfo *chunk, const ParquetColumn *column)
{
    ThriftField inner = {0};
    ChunkMeta meta = {.type = -1, .codec = -1, .rows = -1};
    thrift_is_struct(&p->in, field);
    while (thrift_next(&p->in, &inner)) {
        read_meta_field(p, &inner, chunk, &meta);
    }
    footer_require(p, meta.type == physical_of(column->type), "a chunk's type");
    footer_require(p, meta.checked, "a chunk without checksums");
    place_chunk(p, chunk, &meta);
}

void footer_read_chunk(FooterPass *p, ChunkInfo *chunk, const ParquetColumn *column)
{
    ThriftField field = {0};
    while (thrift_next(&p->in, &field)) {
        switch (field.id) {
        case CHUNK_META:
            read_meta(p, &field, chunk, column);
            break;
        case CHUNK_OFFSETS_AT:
            chunk->offsets.at = (uint64_t)thrift_get_int(&p->in, &field);
            break;
        case CHUNK_OFFSETS_LEN:
            chunk->offsets.len = (uint32_t)thrift_get_int(&p->in, &field);
            break;
        case CHUNK_INDEX_AT:
            chunk->index.at = (uint64_t)thrift_get_int(&p->in, &field);
            break;
        case CHUNK_INDEX_LEN:
            chunk->index.len = (uint32_t)thrift_get_int(&p->in, &field);
            break;
        default:
            thrift_skip(&p->in, &field);
        }
    }
    footer_require(p, chunk->end > 0, "a chunk without a description");
    check_part(p, &chunk->bloom);
    check_part(p, &chunk->index);
    check_part(p, &chunk->offsets);
}
