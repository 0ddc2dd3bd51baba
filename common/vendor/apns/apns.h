// SPDX-License-Identifier: Apache-2.0
// Apple Push Notification service: one push a call, as JSON, over HTTP/2 only. The secret is the
// .p8 key, the credential's id the key's; the provider token that it signs is made every 40 minutes
// at times that all replicas share (between 20 and 60 are allowed). Doubles of a notification show
// as one: its id is the collapse id. Apple's feedback on a device is the answer itself.
// Settings: team_id, topic (the app's bundle id); base_url for the sandbox.
// Source: developer.apple.com/documentation/usernotifications (establishing a token-based
// connection, sending notification requests, handling notification responses).
#pragma once

#include "common/vendor/vendor_api.h"

extern const VendorApi apns_api;

bool apns_build(
    const VendorMail *push, const VendorAccount *account, int64_t now_us, Arena *arena,
    VendorRequest *ret, Error *err);
void apns_read(const VendorAnswer *answer, Arena *arena, SendResult *ret);
bool apns_sign(
    const VendorAccount *account, Str audience, int64_t now_us, Arena *arena, VendorBearer *ret,
    Error *err);
bool apns_stale(const VendorAnswer *answer, Arena *arena);
