// SPDX-License-Identifier: Apache-2.0
#include "common/parquet/write/thrift_writer.h"

#include <assert.h>

void thrift_varint(Buf *out, uint64_t value)
{
    while (value >= 0x80) {
        buf_char(out, (char)(uint8_t)(value | 0x80));
        value >>= 7;
    }
    buf_char(out, (char)(uint8_t)value);
}

void thrift_zigzag(Buf *out, int64_t value)
{
    thrift_varint(out, ((uint64_t)value << 1) ^ (value < 0 ? UINT64_MAX : 0));
}

void thrift_field(ThriftWriter *w, int id, ThriftType type)
{
    int step = id - w->last[w->depth];
    assert(step > 0 && step < 16);
    buf_char(w->out, (char)(uint8_t)(step << 4 | (int)type));
    w->last[w->depth] = id;
}

void thrift_i32(ThriftWriter *w, int id, int64_t value)
{
    thrift_field(w, id, THRIFT_I32);
    thrift_zigzag(w->out, value);
}

void thrift_i64(ThriftWriter *w, int id, int64_t value)
{
    thrift_field(w, id, THRIFT_I64);
    thrift_zigzag(w->out, value);
}

void thrift_bool(ThriftWriter *w, int id, bool value)
{
    thrift_field(w, id, value ? THRIFT_TRUE : THRIFT_FALSE);
}

void thrift_bytes(ThriftWriter *w, int id, Str value)
{
    thrift_field(w, id, THRIFT_BINARY);
    thrift_element_bytes(w, value);
}

void thrift_element_bytes(ThriftWriter *w, Str value)
{
    thrift_varint(w->out, value.len);
    buf_str(w->out, value);
}

void thrift_list(ThriftWriter *w, int id, ThriftType element, size_t count)
{
    thrift_field(w, id, THRIFT_LIST);
    if (count < 15) {
        buf_char(w->out, (char)(uint8_t)(count << 4 | (size_t)element));
    } else {
        buf_char(w->out, (char)(uint8_t)(0xf0 | (int)element));
        thrift_varint(w->out, count);
    }
}

void thrift_enter(ThriftWriter *w)
{
    assert(w->depth + 1 < THRIFT_DEPTH_MAX);
    w->last[++w->depth] = 0;
}

void thrift_struct(ThriftWriter *w, int id)
{
    thrift_field(w, id, THRIFT_STRUCT);
    thrift_enter(w);
}

void thrift_leave(ThriftWriter *w)
{
    buf_char(w->out, THRIFT_STOP);
    w->depth = w->depth > 0 ? w->depth - 1 : 0;
}
