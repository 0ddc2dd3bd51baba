// SPDX-License-Identifier: Apache-2.0
// Vendor: what carries mail to the outside: an SMTP server, or an HTTP API with one credential
// (http/). No policy here: retries over time, the ledger and events belong to the
// dispatcher. Law: a mail handed over is answered exactly once, from the loop, never inside send().
// A vendor reports what is certain: only a mail answered SEND_UNKNOWN may have reached the
// recipient without our knowing.
#pragma once

#include "common/vendor/vendor_api.h"

enum { MAIL_COPIES_MAX = 49, MAIL_SERVER_SIZE = 128 };

typedef struct Mail Mail;
typedef void (*MailDone)(void *ctx, Mail *mail, const SendResult *result);

// The caller's; it and what it points to must live until on_done.
struct Mail {
    Str tenant;
    Str from, to;        // envelope; checked by mail_address_check()
    const Str *copies;   // further recipients of the same mail: who is refused fails nothing
    size_t copy_count;   // at most MAIL_COPIES_MAX
    Str message;         // headers and body, CRLF; empty when no vendor that may get it wants it
    bool utf8;           // an address or a header is not ASCII
    VendorMail *content; // the same in parts, for HTTP APIs; NULL when none may get it
    Str envid;           // what a report of this mail names it by (RFC 3461), [a-z0-9]; empty: none
    bool asks; // no mail is sent: did the vendor take `content`? ACCEPTED it did, UNSENT it did
               // not, UNKNOWN it does not say
    Priority lane;
    uint64_t give_up_at_ms; // uv_hrtime()'s time in ms: not started after it
    uint64_t held_until_ms; // the claim's end: not written after it; its owner may make it later
    MailDone on_done;
    void *ctx;
    // The vendor's own while it holds the mail.
    Mail *next;
    uint32_t tries;
    char server[MAIL_SERVER_SIZE]; // the host that it was handed to; "": none yet
    bool renewed;                  // it was sent once more, with another token
};

// What the vendor knows of its own reach. No question is asked for it: it is how the last
// connections and answers went.
typedef struct VendorHealth {
    int64_t down_since_us; // the first of the failures in a row; 0: it is not known to be down
    int64_t reached_at_us; // when it was last reached; 0: not yet
    size_t waiting;        // mails that it holds and has not started
    const char *reason;    // while it is down: the last failure; valid until the next call
} VendorHealth;

typedef struct Vendor {
    const char *name; // "smtp": its name in the ledger and in events
    void *self;
    void (*send)(void *self, Mail *mail);
    // Answers mails that were not started with SEND_RELEASED, from now on; the others end normally.
    void (*drain)(void *self);
    VendorHealth (*health)(void *self);
    // Try to reach it though no mail waits, until it was reached once.
    void (*probe)(void *self);
} Vendor;
