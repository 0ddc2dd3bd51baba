// SPDX-License-Identifier: Apache-2.0
// Vonage's Voice API: JSON with the script as an NCCO, so that no URL of ours has to answer while
// it rings. The credential's id is the application's id, its secret the application's private key
// as PEM: each request has a token of its own, signed with it. Settings: from (a number of the
// account; several with ',': vendor_text.h), from_urgent. No idempotency keys, and it cannot be
// asked. The attempt is named by the URL of its events.
// Source: developer.vonage.com, "Voice API", "NCCO reference", "Authentication", "Webhook
// reference"; vonage-node-sdk packages/voice, packages/jwt.
#pragma once

#include "common/vendor/vendor_api.h"

enum { VONAGE_SCRIPT_MAX = 1500, VONAGE_TOKEN_S = 300 };

extern const VendorApi vonage_voice_api;

bool vonage_voice_build(
    const VendorMail *mail, const VendorAccount *account, int64_t now_us, Arena *arena,
    VendorRequest *ret, Error *err);
bool vonage_voice_test(
    const VendorAccount *account, int64_t now_us, Arena *arena, VendorRequest *ret, Error *err);
void vonage_voice_read(const VendorAnswer *answer, Arena *arena, SendResult *ret);
