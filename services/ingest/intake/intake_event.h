// SPDX-License-Identifier: Apache-2.0
// What an application's message on in.evt.<tenant>.<type> becomes on EVENTS, and what it is
// answered. Pure. Its Nats-Msg-Id there is "<tenant>/<type>/<the id that it was given>", so that
// JetStream's window of duplicates, which is one for all subjects, never takes one tenant's or
// type's event for another's. One without an id gets one that is its alone.
#pragma once

#include "common/bus/jetstream/bus.h"

enum { INTAKE_HEADERS_MAX = 64 };

typedef struct IntakeMessage {
    Str subject; // in.evt.<tenant>.<type>
    Str payload;
    const BusHeader *headers;
    size_t header_count;
} IntakeMessage;

// Why it is refused, in JetStream's form.
typedef struct IntakeRefusal {
    int code; // 400: it never will be; 503: later, perhaps
    char text[240];
} IntakeRefusal;

// One that begins as a sealed event is refused: of a tenant whose events stay in clear readers
// would wait a minute for the key that it names, and as many of them as they may have in hand would
// hold up every tenant's. Headers that the message may not set are left out (JetStream's and our
// own headers); a condition on the stream is refused, for it is not kept. Slices live in `arena` or
// in the message.
bool intake_read(
    const IntakeMessage *message, Arena *arena, Str *ret_tenant, BusOut *ret,
    IntakeRefusal *ret_refusal);

// JetStream's own words: an ack, an error.
Str intake_ack(uint64_t sequence, bool duplicate, Arena *arena);
Str intake_error(const IntakeRefusal *refusal, Arena *arena);
