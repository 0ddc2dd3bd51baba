// SPDX-License-Identifier: Apache-2.0
// What the files of HttpVendor share: http_vendor.c has the queue, the turns and its life,
// http_call.c one call and what its answer means, http_bearer.c what authorizes calls for a while.
#pragma once

#include "common/base/buf.h"
#include "common/vendor/push/bearers.h"
#include "services/dispatcher/vendor/http/http_queue.h"
#include "services/dispatcher/vendor/http/http_vendor.h"

struct HttpVendor {
    HttpVendorOptions options;
    HttpQueue queue;
    unsigned running; // calls, probes and those that ask for a token included
    bool draining, closing, probing;
    Bearers *bearers; // NULL: the secret itself authorizes
    bool granting;    // the call that asks for a token is on its way
    bool waits;       // and without it no mail can be sent
    Error no_bearer;  // why the last one could not be had
    uv_timer_t soon, tick;
    unsigned handles;
    int64_t down_since_us, reached_at_us;
    unsigned failures; // in a row
    char reason[HTTP_VENDOR_REASON_MAX];
    void (*on_closed)(void *ctx);
    void *closed_ctx;
};

// ---- http_vendor.c ----

void http_vendor_pump_soon(HttpVendor *vendor);
void http_vendor_note_failure(HttpVendor *vendor, const char *text);
void http_vendor_note_reached(HttpVendor *vendor);

// ---- http_call.c ----

// The body of an answer, as much of it as is read.
typedef struct AnswerBody {
    Buf bytes;
    bool cut;
} AnswerBody;

bool answer_body_add(AnswerBody *body, Str bytes); // false: enough
VendorAnswer answer_of(
    const AnswerBody *body, const HttpAnswer *got, const VendorPair *headers, size_t count);
bool http_request_check(const VendorRequest *request, Error *err);
// One call for the mail; NULL: a probe. false: it has to wait for a token, nothing was done.
bool http_call_start(HttpVendor *vendor, Mail *mail);

// ---- http_bearer.c ----

typedef enum BearerStanding {
    BEARER_HERE,
    BEARER_COMING, // asked for
    BEARER_NONE,   // it cannot be had; the error says why
} BearerStanding;

// Into account->bearer, in the arena; *ret_key is what it is kept under. mail: NULL of a probe.
BearerStanding http_bearer_find(
    HttpVendor *vendor, const Mail *mail, VendorAccount *account, Arena *arena, Str *ret_key,
    Error *err);
