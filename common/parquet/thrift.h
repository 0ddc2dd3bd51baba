// SPDX-License-Identifier: Apache-2.0
// The types of Thrift's compact protocol, for both sides.
#pragma once

typedef enum ThriftType {
    THRIFT_STOP = 0,
    THRIFT_TRUE = 1, // also the type of a list's bool elements
    THRIFT_FALSE = 2,
    THRIFT_I8 = 3,
    THRIFT_I16 = 4,
    THRIFT_I32 = 5,
    THRIFT_I64 = 6,
    THRIFT_DOUBLE = 7,
    THRIFT_BINARY = 8,
    THRIFT_LIST = 9,
    THRIFT_SET = 10,
    THRIFT_MAP = 11,
    THRIFT_STRUCT = 12,
} ThriftType;

enum { THRIFT_DEPTH_MAX = 12 };
