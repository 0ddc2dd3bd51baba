// SPDX-License-Identifier: Apache-2.0
// Domain events in protobuf become the same JSON object that their publisher could have sent: one
// path for both. Which messages are known is one table in domain_message.c. Pure.
//
// Field names are those of the .proto file. Whole numbers are JSON numbers (not strings, as in
// protobuf's own JSON); enumerations are their values' names; bytes are base64url. A field
// `<name>_micros` (an amount in millionths) also gives `<name>` as a number: 19.99 of 19990000.
#pragma once

#include <jansson.h>
#include <protobuf-c/protobuf-c.h>

#include "common/base/arena.h"
#include "common/base/error.h"

// "stentor.v1.PlaceOrder" or just "PlaceOrder", in any of its spellings; NULL: not a known domain event.
const ProtobufCMessageDescriptor *domain_message_type(Str name);
// A new reference. ERROR_PERMANENT: the bytes are no such message.
json_t *domain_message_json(
    const ProtobufCMessageDescriptor *type, Str bytes, Arena *arena, Error *err);
