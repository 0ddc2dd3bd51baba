// SPDX-License-Identifier: Apache-2.0
// HttpVendor: the HTTP API of one vendor with one credential, behind vendor.h. Mails wait here in
// order of their lanes, at most `calls` are on the way at once. What a request looks like and what
// an answer means is the VendorApi's (common/vendor); whether the vendor may have the mail is the
// transport's word. What authorizes calls for a while is made, kept and renewed here (http_bearer).
//
// unsent: not the whole body was handed over (name, connection, TLS, an early end), or its time had
// come before it was started.
// unknown: it went out and no answer came that settles it. Only what was surely not sent is begun
// again here: what a connection with many calls left behind as it ended, five times, and once what
// was refused for nothing but its token.
#pragma once

#include "services/dispatcher/vendor/http/transport.h"
#include "services/dispatcher/vendor/vendor.h"

typedef struct HttpVendor HttpVendor;

enum {
    HTTP_VENDOR_CALLS_MAX = 256,
    HTTP_VENDOR_STREAMS = 400, // calls at once over HTTP/2: four connections of a hundred streams
    HTTP_VENDOR_REASON_MAX = 200,
};

// The credential as it is now; *ret need only live until the call returns to the loop.
// false: TRANSIENT while it is being read, CONFIG when it cannot be.
typedef bool (*HttpVendorAccount)(void *ctx, VendorAccount *ret, Error *err);

typedef struct HttpVendorOptions {
    uv_loop_t *loop;
    Transport transport;
    Transport grants; // HTTP/1.1, for the calls that ask for a token
    const VendorApi *api;
    const char *name; // the vendor's; NULL: the api's
    unsigned calls;   // at least 1
    int64_t connect_ms, whole_ms;
    HttpVendorAccount account;
    // May a mail of the lane go now, of so many that wait? false: *ret_at_us (clock_mono_us()) is
    // when to ask again. NULL: always.
    bool (*may_start)(void *ctx, Priority lane, size_t waiting, int64_t *ret_at_us);
    // The answer to a probe, when it says something of the account's limits; NULL: never mind.
    void (*on_quota)(void *ctx, const VendorQuota *quota);
    void *ctx; // of all three
} HttpVendorOptions;

HttpVendor *http_vendor_new(const HttpVendorOptions *options);
Vendor http_vendor(HttpVendor *vendor);
size_t http_vendor_running(const HttpVendor *vendor);
// Waiting mails are released, calls end by themselves, then on_closed; the vendor is gone then.
void http_vendor_close(HttpVendor *vendor, void (*on_closed)(void *ctx), void *ctx);
