// SPDX-License-Identifier: Apache-2.0
// Thrift's compact protocol, read: foreign bytes. A reader that met something impossible is `bad`
// for ever: it gives zeros and no further field, so that one test at the end is enough. Nothing is
// allocated, and no step takes more than the bytes that there are.
#pragma once

#include "common/base/str.h"
#include "common/parquet/thrift.h"

typedef struct ThriftReader {
    Str rest;
    bool bad;
} ThriftReader;

typedef struct ThriftField {
    int id; // of the field at hand; 0 before the first
    ThriftType type;
} ThriftField;

// The next field of the struct that *field went through so far. false: its end, or bad.
bool thrift_next(ThriftReader *r, ThriftField *field);
// The value of the field at hand; another type than asked for is bad.
int64_t thrift_get_int(ThriftReader *r, const ThriftField *field); // of any width
bool thrift_get_bool(ThriftReader *r, const ThriftField *field);
Str thrift_get_bytes(ThriftReader *r, const ThriftField *field); // points into the input
// How many elements follow; bad when they are more than `max`, or more than there can be.
size_t thrift_get_list(ThriftReader *r, const ThriftField *field, ThriftType element, size_t max);
void thrift_is_struct(ThriftReader *r, const ThriftField *field); // its fields follow
void thrift_skip(ThriftReader *r, const ThriftField *field);
// An element of a list.
int64_t thrift_take_int(ThriftReader *r);
Str thrift_take_bytes(ThriftReader *r);
uint8_t thrift_take_byte(ThriftReader *r);
uint64_t thrift_take_varint(ThriftReader *r);
