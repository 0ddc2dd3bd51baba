// SPDX-License-Identifier: Apache-2.0
// Vendor: whoever carries mail to the outside. SMTP is the first; each further one is a file behind
// this interface. Not a place for policy: retries over time, the ledger and what is published are
// the dispatcher's. Law: a mail handed over is answered exactly once, from the loop, never inside
// send(). A vendor tells what is certain: only SEND_UNKNOWN may have reached the recipient without
// our knowing.
#pragma once

#include "common/base/str.h"
#include "common/model/rules/ladder.h"

typedef enum SendState {
    SEND_ANSWERED, // the vendor took or refused it: code, text and the reply's class say which
    SEND_UNSENT,   // surely not sent: the vendor could not be reached until give_up_at_ms, or the
                   // claim ended before the mail was written
    SEND_UNKNOWN,  // handed over whole, and the answer never came
    SEND_RELEASED, // surely not sent: draining
} SendState;

// Slices are valid during the call of MailDone; text is one line of UTF-8 with addresses masked.
typedef struct SendResult {
    SendState state;
    ReplyClass reply; // SEND_ANSWERED
    uint32_t retry_after_ms;
    Str code, enhanced, text;
} SendResult;

typedef struct Mail Mail;
typedef void (*MailDone)(void *ctx, Mail *mail, const SendResult *result);

// The caller's; it and what it points to must live until on_done.
struct Mail {
    Str tenant;
    Str from, to; // envelope; checked by mail_address_check()
    Str message;  // headers and body, CRLF
    bool utf8;    // an address or a header is not ASCII
    Priority lane;
    uint64_t give_up_at_ms; // uv_hrtime()'s time in ms: not begun after it
    uint64_t held_until_ms; // the claim's end: not written after it; its owner may make it later
    MailDone on_done;
    void *ctx;
    // The vendor's own while it holds the mail.
    Mail *next;
    uint32_t tries;
};

typedef struct Vendor {
    const char *name; // "smtp": what the ledger and the events say
    void *self;
    void (*send)(void *self, Mail *mail);
    // Answers all that is not begun with SEND_RELEASED, now and from now on; what is begun ends as
    // it ends.
    void (*drain)(void *self);
} Vendor;
