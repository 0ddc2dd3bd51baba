// SPDX-License-Identifier: Apache-2.0
// One stored message of a stream ($JS.API.STREAM.MSG.GET): the only place that asks for one and
// that reads the answer (tests/lint). Not for the hot path: the payload comes as base64 in JSON.
#pragma once

#include "common/bus/jetstream/bus.h"

typedef struct MessageQuery {
    const char *stream;
    uint64_t sequence;   // the message with this sequence; with next_of: the first from here on
    const char *next_of; // a subject, wildcards too; NULL: any
    const char *last_of; // the last message of this subject; then no sequence
} MessageQuery;

// Asks. on_reply comes once, from the loop, with JetStream's answer for get_message_reply(); err
// TRANSIENT after 5 s without one.
void get_message(Bus *bus, const MessageQuery *query, BusReply on_reply, void *ctx);

// The answer as the message that it holds, copied to `arena`; `stream` is borrowed. *ret_found
// false: there is no such message. ERROR_TRANSIENT: the server cannot answer now. ERROR_PERMANENT:
// its refusal (the stream is missing), or no such answer.
bool get_message_reply(
    Str reply, const char *stream, Arena *arena, BusMessage *ret, bool *ret_found, Error *err);
// A header in a stored message's block of them; empty: none.
Str get_message_header(Str block, const char *name);
