// SPDX-License-Identifier: Apache-2.0
// Vonage's SMS API: a form, answered by 200 and a status for each part. The credential's id is the
// API key, its secret the API secret. Settings: from (vendor_text.h). No idempotency keys, and no
// way to ask. The attempt is named by client-ref, which its reports repeat.
// Source: developer.vonage.com, "SMS API", "Signing messages", "Delivery receipts".
#pragma once

#include "common/vendor/vendor_api.h"

enum { VONAGE_TEXT_MAX = 3200, VONAGE_TTL_MIN_MS = 20000, VONAGE_TTL_MAX_MS = 604800000 };

extern const VendorApi vonage_api;

bool vonage_build(
    const VendorMail *mail, const VendorAccount *account, int64_t now_us, Arena *arena,
    VendorRequest *ret, Error *err);
bool vonage_test(
    const VendorAccount *account, int64_t now_us, Arena *arena, VendorRequest *ret, Error *err);
void vonage_read(const VendorAnswer *answer, Arena *arena, SendResult *ret);
