// SPDX-License-Identifier: Apache-2.0
// Dead letters as the command line sees them: reading one, and what sending it again means. Pure:
// time is an argument; cmd_dlq.c reads and publishes.
#pragma once

#include "common/bus/bus.h"
#include "stentor/v1/dead.pb-c.h"

typedef struct Letter {
    uint64_t sequence; // in DEAD
    int64_t stored_at_us;
    Str subject; // ntf.dead.<stage>.<tenant>
    Str stage, tenant;
    Str traceparent;                     // of the buried event; empty: none
    const Stentor__V1__DeadLetter *body; // NULL: it cannot be read, `unreadable` says why
    Error unreadable;
    const ProtobufCMessage *event; // the buried event; NULL: not one of its subject's
    const char *notification_id;   // "": none could be read
    uint32_t attempts;             // that were made, as far as the letter tells
} Letter;

// Never fails: what cannot be read is told in the letter. Everything lives in `arena`.
void letter_read(const BusMessage *message, Arena *arena, Letter *ret);

// A reply of $JS.API.STREAM.MSG.GET.DEAD as the message that it holds. *ret_found false: there is
// none. ERROR_PERMANENT: JetStream's refusal, or not such a reply.
bool letter_reply(Str reply, Arena *arena, BusMessage *ret, bool *ret_found, Error *err);

// "90s", "30m", "2h", "7d" before now, or a time in RFC 3339. ERROR_CONFIG when it is neither.
bool letter_since(const char *text, int64_t now_us, int64_t *ret_us, Error *err);

typedef struct ResendRules {
    bool may_double;    // also what may have been sent already
    bool ignore_expiry; // an expired mail loses its expiry
    int64_t now_us;
} ResendRules;

typedef struct Resend {
    BusOut out;
    uint32_t attempt; // that will be made; 0: the event goes as it was
    bool own_id;      // under the id that it had: a duplicate was not stored
} Resend;

// What is published to have the letter's event handled again. The same letter always gives the same
// event id and attempt. Everything lives in `arena` or in the letter. ERROR_PERMANENT says why it
// is not sent again, with the way out.
bool letter_resend(
    const Letter *letter, const ResendRules *rules, Arena *arena, Resend *ret, Error *err);
