// SPDX-License-Identifier: Apache-2.0
#include "common/parquet/read/thrift_reader.h"

enum { VARINT_BYTES = 10 };

static void set_bad(ThriftReader *r)
{
    r->bad = true;
    r->rest = STR_EMPTY;
}

uint8_t thrift_take_byte(ThriftReader *r)
{
    if (r->rest.len == 0) {
        set_bad(r);
        return 0;
    }
    uint8_t byte = (uint8_t)*r->rest.ptr;
    r->rest.ptr++;
    r->rest.len--;
    return byte;
}

uint64_t thrift_take_varint(ThriftReader *r)
{
    uint64_t value = 0;
    for (int i = 0; i < VARINT_BYTES; i++) {
        uint8_t byte = thrift_take_byte(r);
        if (i == VARINT_BYTES - 1 && byte > 1) {
            break;
        }
        value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            return r->bad ? 0 : value;
        }
    }
    set_bad(r);
    return 0;
}

int64_t thrift_take_int(ThriftReader *r)
{
    uint64_t value = thrift_take_varint(r);
    uint64_t half = value >> 1;
    return (int64_t)((value & 1) != 0 ? ~half : half);
}

Str thrift_take_bytes(ThriftReader *r)
{
    uint64_t len = thrift_take_varint(r);
    if (len > r->rest.len) {
        set_bad(r);
        return STR_EMPTY;
    }
    Str bytes = str_of(r->rest.ptr, (size_t)len);
    r->rest.ptr += len;
    r->rest.len -= (size_t)len;
    return bytes;
}

bool thrift_next(ThriftReader *r, ThriftField *field)
{
    uint8_t head = thrift_take_byte(r);
    if (r->bad || head == THRIFT_STOP) {
        return false;
    }
    int64_t id = (head >> 4) != 0 ? field->id + (head >> 4) : thrift_take_int(r);
    if (r->bad || id <= field->id || id > INT16_MAX) {
        set_bad(r); // also a field that comes twice or out of order: no writer makes that
        return false;
    }
    *field = (ThriftField){(int)id, (ThriftType)(head & 15)};
    return true;
}

int64_t thrift_get_int(ThriftReader *r, const ThriftField *field)
{
    if (field->type == THRIFT_I8) {
        return (int8_t)thrift_take_byte(r);
    }
    if (field->type < THRIFT_I16 || field->type > THRIFT_I64) {
        set_bad(r);
        return 0;
    }
    return thrift_take_int(r);
}

bool thrift_get_bool(ThriftReader *r, const ThriftField *field)
{
    if (field->type != THRIFT_TRUE && field->type != THRIFT_FALSE) {
        set_bad(r);
    }
    return field->type == THRIFT_TRUE;
}

Str thrift_get_bytes(ThriftReader *r, const ThriftField *field)
{
    if (field->type != THRIFT_BINARY) {
        set_bad(r);
        return STR_EMPTY;
    }
    return thrift_take_bytes(r);
}

static uint64_t list_head(ThriftReader *r, ThriftType *ret_element)
{
    uint8_t head = thrift_take_byte(r);
    *ret_element = (ThriftType)(head & 15);
    return head >> 4 == 15 ? thrift_take_varint(r) : head >> 4;
}

size_t thrift_get_list(ThriftReader *r, const ThriftField *field, ThriftType element, size_t max)
{
    ThriftType found = THRIFT_STOP;
    uint64_t count = 0;
    if (field->type == THRIFT_LIST) {
        count = list_head(r, &found);
    }
    // Every element has at least one byte.
    if (found != element || count > max || count > r->rest.len) {
        set_bad(r);
        return 0;
    }
    return (size_t)count;
}

void thrift_is_struct(ThriftReader *r, const ThriftField *field)
{
    if (field->type != THRIFT_STRUCT) {
        set_bad(r);
    }
}

static void skip_value(ThriftReader *r, ThriftType type, int depth);

static void skip_list(ThriftReader *r, int depth)
{
    ThriftType element;
    uint64_t count = list_head(r, &element);
    if (count > r->rest.len) {
        set_bad(r);
        return;
    }
    for (uint64_t i = 0; i < count && !r->bad; i++) {
        if (element == THRIFT_TRUE || element == THRIFT_FALSE) {
            thrift_take_byte(r);
        } else {
            skip_value(r, element, depth);
        }
    }
}

static void skip_value(ThriftReader *r, ThriftType type, int depth)
{
    ThriftField field = {0};
    if (depth == THRIFT_DEPTH_MAX) {
        set_bad(r);
        return;
    }
    switch (type) {
    case THRIFT_TRUE:
    case THRIFT_FALSE:
        return;
    case THRIFT_I8:
        thrift_take_byte(r);
        return;
    case THRIFT_I16:
    case THRIFT_I32:
    case THRIFT_I64:
        thrift_take_varint(r);
        return;
    case THRIFT_BINARY:
        thrift_take_bytes(r);
        return;
    case THRIFT_LIST:
    case THRIFT_SET:
        skip_list(r, depth + 1);
        return;
    case THRIFT_STRUCT:
        while (thrift_next(r, &field)) {
            skip_value(r, field.type, depth + 1);
        }
        return;
    case THRIFT_DOUBLE:
        for (int i = 0; i < 8; i++) {
            thrift_take_byte(r);
        }
        return;
    case THRIFT_STOP:
    case THRIFT_MAP:
        break;
    }
    set_bad(r); // Parquet has no maps
}

void thrift_skip(ThriftReader *r, const ThriftField *field)
{
    skip_value(r, field->type, 0);
}
