// SPDX-License-Identifier: Apache-2.0
// HttpVendor: the HTTP API of one vendor with one credential, behind vendor.h. Mails wait here in
// order of their lanes, at most `calls` are on the way at once. What a request looks like and what
// an answer means is the VendorApi's (common/vendor); whether the vendor may have the mail is
// counted in bytes by the client (common/http/client).
//
// unsent: not the whole body was handed over (name, connection, TLS, an early end), or its time had
// come before it was started.
// unknown: it went out and no answer came that settles it. Nothing is tried again here.
#pragma once

#include "common/http/client/http_client.h"
#include "services/dispatcher/vendor/vendor.h"

typedef struct HttpVendor HttpVendor;

enum { HTTP_VENDOR_CALLS_MAX = 256, HTTP_VENDOR_REASON_MAX = 200 };

// The credential as it is now; *ret need only live until the call returns to the loop.
// false: TRANSIENT while it is being read, CONFIG when it cannot be.
typedef bool (*HttpVendorAccount)(void *ctx, VendorAccount *ret, Error *err);

typedef struct HttpVendorOptions {
    uv_loop_t *loop;
    HttpClient *client; // borrowed, with a guard: a credential never crosses a network in clear
    const VendorApi *api;
    unsigned calls; // 1 to HTTP_VENDOR_CALLS_MAX
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
