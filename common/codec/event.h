// SPDX-License-Identifier: Apache-2.0
// Events as bytes: protobuf-c messages unpacked into an arena and packed into one. The message
// structs themselves (Stentor__V1__...) are the model that services work with; strings in them are
// never NULL, absent means "".
#pragma once

#include <protobuf-c/protobuf-c.h>

#include "common/base/arena.h"
#include "common/base/error.h"

enum { EVENT_BYTES_MAX = 900 * 1024 }; // below NATS's max_payload of 1 MB, headers included

// The unpacked message lives in `arena`; do not free it. Unknown fields are kept, so a relay does
// not lose them. ERROR_PERMANENT "not a <message name>" on bytes that do not parse, or a string
// field that is not UTF-8.
ProtobufCMessage *event_unpack(
    const ProtobufCMessageDescriptor *type, Str bytes, Arena *arena, Error *err);

// Packed bytes in `arena`. ERROR_PERMANENT when above EVENT_BYTES_MAX.
bool event_pack(const ProtobufCMessage *message, Arena *arena, Str *ret_bytes, Error *err);

static inline Str pb_bytes(ProtobufCBinaryData data)
{
    return (Str){(const char *)data.data, data.len};
}
// protobuf-c's strings are not const, and nothing writes to them: the text must outlive the
// message. NULL is the empty string.
static inline char *pb_borrow(const char *text)
{
    return (char *)(uintptr_t)(text != NULL ? text : "");
}
// A copy for a message, in `arena`.
static inline char *pb_text(Arena *arena, Str s)
{
    return s.len == 0 ? pb_borrow("") : arena_cstr(arena, s);
}
// The data is not copied: `s` must outlive the message.
static inline ProtobufCBinaryData pb_data(Str s)
{
    return (ProtobufCBinaryData){.len = s.len, .data = (uint8_t *)(uintptr_t)s.ptr};
}
