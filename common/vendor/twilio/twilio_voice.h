// SPDX-License-Identifier: Apache-2.0
// Twilio's calls: a form with the script as TwiML, so that no URL of ours has to answer while it
// rings. Account and signature are those of its messages (twilio.h). Settings: account, from (a
// number of the account; several with ',': vendor_text.h), from_urgent. No idempotency keys, and it
// cannot be asked: the list of calls shows neither their words nor anything of ours. The attempt is
// named by the URL of its report.
// Source: twilio.com/docs/voice/api/call-resource, .../voice/twiml/say, .../api/errors.
#pragma once

#include "common/vendor/vendor_api.h"

enum { TWILIO_TWIML_MAX = 4000 }; // UTF-16 units

extern const VendorApi twilio_voice_api;

bool twilio_voice_build(
    const VendorMail *mail, const VendorAccount *account, int64_t now_us, Arena *arena,
    VendorRequest *ret, Error *err);
bool twilio_voice_test(
    const VendorAccount *account, int64_t now_us, Arena *arena, VendorRequest *ret, Error *err);
void twilio_voice_read(const VendorAnswer *answer, Arena *arena, SendResult *ret);
