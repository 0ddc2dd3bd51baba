// SPDX-License-Identifier: Apache-2.0
// Web Push (RFC 8030): one push a call to the browser's own push service, encrypted for the browser
// (RFC 8291) and signed by the application server's key (VAPID, RFC 8292). The address is the
// subscription as the browser gives it, {"endpoint", "keys": {"p256dh", "auth"}}; an endpoint comes
// from a client, so only hosts of known push services are called. Doubles of a notification replace
// each other: its id is the Topic, and `tag` of what the page's service worker gets:
//   {"title", "body", "tag", "nid", "data": {..}}
// The secret is the VAPID key: 32 bytes in base64url, or PEM. Settings: subject ("mailto:..." or
// "https://..."); hosts: more push services, "push.example.com,*.example.net".
// Source: RFC 8030, 8188, 8291, 8292; mozilla-services.github.io/autopush-rs (errors).
#pragma once

#include "common/vendor/jwt.h"
#include "common/vendor/vendor_api.h"

enum { WEBPUSH_SECRET_LEN = 16, WEBPUSH_SALT_LEN = 16 };

extern const VendorApi webpush_api;

// A browser's subscription. Slices are the JSON's.
typedef struct WebPushTarget {
    Str endpoint, origin; // "https://host[:port]"
    uint8_t point[P256_POINT_LEN];
    uint8_t secret[WEBPUSH_SECRET_LEN];
} WebPushTarget;

// ERROR_PERMANENT names what of the subscription is wrong, and a host that is no push service.
bool webpush_target(
    const VendorAccount *account, Str subscription, Arena *arena, WebPushTarget *ret, Error *err);
// One record (RFC 8188) under `own`, a key that is used for nothing else, and a new salt.
bool webpush_encrypt(
    const WebPushTarget *target, EVP_PKEY *own, const uint8_t salt[WEBPUSH_SALT_LEN], Str plain,
    Arena *arena, Str *ret, Error *err);

bool webpush_build(
    const VendorMail *push, const VendorAccount *account, int64_t now_us, Arena *arena,
    VendorRequest *ret, Error *err);
void webpush_read(const VendorAnswer *answer, Arena *arena, SendResult *ret);
// "t=..., k=...", for one origin.
bool webpush_sign(
    const VendorAccount *account, Str audience, int64_t now_us, Arena *arena, VendorBearer *ret,
    Error *err);
Str webpush_audience(const VendorMail *push, Arena *arena);
