// SPDX-License-Identifier: Apache-2.0
// Thrift's compact protocol, written: as much of it as Parquet's footer, page headers and indexes
// need. Source: github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md.
#pragma once

#include "common/base/buf.h"
#include "common/parquet/thrift.h"

// Begins inside a struct at depth 0; thrift_leave at depth 0 ends it.
typedef struct ThriftWriter {
    Buf *out;
    int depth;
    int last[THRIFT_DEPTH_MAX]; // the field before, in each open struct
} ThriftWriter;

void thrift_varint(Buf *out, uint64_t value);
void thrift_zigzag(Buf *out, int64_t value);
void thrift_field(ThriftWriter *w, int id, ThriftType type); // its value follows
void thrift_i32(ThriftWriter *w, int id, int64_t value);
void thrift_i64(ThriftWriter *w, int id, int64_t value);
void thrift_bool(ThriftWriter *w, int id, bool value);
void thrift_bytes(ThriftWriter *w, int id, Str value);
void thrift_list(ThriftWriter *w, int id, ThriftType element, size_t count);
void thrift_element_bytes(ThriftWriter *w, Str value); // of a list of binaries
void thrift_enter(ThriftWriter *w);                    // a struct that is a list's element
void thrift_struct(ThriftWriter *w, int id);
void thrift_leave(ThriftWriter *w);
