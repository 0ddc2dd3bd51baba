// SPDX-License-Identifier: Apache-2.0
// MassTransit's envelope (application/vnd.masstransit+json), in which services of .NET publish:
// {"messageId", "correlationId", "messageType": ["urn:message:BookWorm.Contracts:PlaceOrderCommand"],
// "message": {...}, "sentTime", "headers", ...}, its members in any of their spellings. Pure.
#pragma once

#include <jansson.h>

#include "common/base/arena.h"
#include "common/base/error.h"

// Slices live in `arena`; empty: not given.
typedef struct Envelope {
    Str message_id;
    Str sent_time;      // RFC 3339, unchecked
    Str correlation_id; // of the envelope; the message may have its own
    Str type;           // the first URN whose event is known (common/names), else of the first URN
    json_t *message;    // an object, borrowed from the root
} Envelope;

// true: an object whose `messageType` is an array that begins with a URN of MassTransit.
bool envelope_is(const json_t *root);
// ERROR_PERMANENT names the member that is missing or wrong.
bool envelope_read(const json_t *root, Arena *arena, Envelope *ret, Error *err);
