// SPDX-License-Identifier: Apache-2.0
// Resend's API: one mail a call, as JSON, with an Idempotency-Key that it knows for 24 hours: the
// same call again sends nothing twice. No settings. It writes the Message-ID itself.
// Source: resend.com/docs (send email, errors, idempotency keys, attachments and their types, rate
// limit).
#pragma once

#include "common/vendor/vendor_api.h"

extern const VendorApi resend_api;

bool resend_build(
    const VendorMail *mail, const VendorAccount *account, int64_t now_us, Arena *arena,
    VendorRequest *ret, Error *err);
// A mail without any field, which 422 answers when the key is good. (A key may be restricted to
// sending, so that there is nothing else that each of them may do.)
bool resend_test(
    const VendorAccount *account, int64_t now_us, Arena *arena, VendorRequest *ret, Error *err);
void resend_read(const VendorAnswer *answer, Arena *arena, SendResult *ret);
