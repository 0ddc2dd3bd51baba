// SPDX-License-Identifier: Apache-2.0
// Sealed events: what EVENTS keeps of an event, and the event again (event.proto). The keys are
// derived from epoch keys (common/codec/event_key.h), so sealing and opening wait for no
// server, and for nothing but a few small files, once a minute. Pure but for these files; time is
// an argument (loop or monotonic microseconds).
//
// Law: what is sealed is bound to its tenant and its subject. What cannot be opened is refused with
// the key's name, and its bytes are kept as they are.
#pragma once

#include "common/bus/jetstream/bus.h"
#include "common/codec/event_key.h"

#define EVENT_SEALED_HEADER "Stentor-Sealed"
// On a copy of an event that was published in clear: where that stands, or stood, in EVENTS.
#define EVENT_ORIGINAL_HEADER "Stentor-Original"
// And since when, in microseconds.
#define EVENT_ORIGINAL_AT_HEADER "Stentor-Original-At"
#define EVENT_SEALED_TYPE "application/vnd.stentor.sealed-event"

typedef struct EventKeys EventKeys;

EventKeys *event_keys_new(MasterKey *master); // borrowed
void event_keys_free(EventKeys *keys);        // NULL-safe

// The epoch keys are known well enough to seal under them, now. ERROR_TRANSIENT: they cannot be
// read for too long.
bool event_keys_ready(EventKeys *keys, int64_t now_us, Error *err);

bool event_is_sealed(Str payload);
// An event of ours without personal data, which stays in clear, because programs without keys read
// it: PlaceOrderTimeout, CleanUpOrders, CleanUpSentEmail, short and without '@' and '+'.
bool event_is_plain(Str type, Str payload);

// The event as it is stored: `out` with payload and headers sealed; its subject is
// evt.<tenant>.<type>. Everything lives in `arena` or in what `out` had. An id that could be an
// address goes out as its hash. ERROR_PERMANENT: too large; ERROR_TRANSIENT: the epoch keys cannot
// be read for too long.
bool event_seal_out(EventKeys *keys, int64_t now_us, BusOut *out, Arena *arena, Error *err);

// The copy of a message in clear, under an id of its own, which is the same each time.
bool event_seal_copy(
    EventKeys *keys, int64_t now_us, const BusMessage *message, Arena *arena, BusOut *ret,
    Error *err);

// Opens it where it stands: payload, event_id, headers, original, stored_at_us, and `kept`, which
// is what was sealed. One in clear stays as it is, without `kept`. ERROR_PERMANENT: malformed,
// altered, or its key is gone, and `kept` is set too; ERROR_TRANSIENT: its key may appear within a
// minute (a folder shared by several machines).
bool event_open(EventKeys *keys, int64_t now_us, BusMessage *message, Arena *arena, Error *err);

// What a dead letter keeps of a message: its payload, sealed with its headers. Of one that is
// sealed that; of one that cannot be sealed whole its beginning; of a plain one, or while no key is
// known, nothing: then `kept` stays empty.
void event_keep(EventKeys *keys, int64_t now_us, BusMessage *message, Arena *arena);
// The same of another payload of the message (domain_event_letter), without headers.
void event_keep_letter(EventKeys *keys, int64_t now_us, BusMessage *message, Arena *arena);

// A piece of an event in a table: sealed for the tenant and bound to `place`.
bool event_seal_piece(
    EventKeys *keys, int64_t now_us, Str tenant, Str place, Str plain, Arena *arena, Str *ret,
    Error *err);
// One in clear is returned as it is. Errors as of event_open.
bool event_open_piece(
    EventKeys *keys, int64_t now_us, Str tenant, Str place, Str piece, Arena *arena, Str *ret,
    Error *err);

// The sequence of the original that a stored message is a copy of; 0: it is none.
uint64_t event_original(const BusMessage *message);
int64_t event_original_at(const BusMessage *message); // 0: not said
