// SPDX-License-Identifier: Apache-2.0
// SendGrid's v3 Mail Send: one personalization a call, as JSON. Settings: test_from (an address of
// a verified sender for `test`). No idempotency keys, and it cannot be asked: custom_args come back
// in its callbacks and settle an unknown outcome.
// Source: sendgrid/sendgrid-oai spec/paths/mail_send; twilio.com/docs/sendgrid, mail send, errors,
// rate limits.
#pragma once

#include "common/vendor/vendor_api.h"

extern const VendorApi sendgrid_api;

bool sendgrid_build(
    const VendorMail *mail, const VendorAccount *account, int64_t now_us, Arena *arena,
    VendorRequest *ret, Error *err);
// With sandbox_mode: checked and not sent.
bool sendgrid_rehearse(
    const VendorMail *mail, const VendorAccount *account, int64_t now_us, Arena *arena,
    VendorRequest *ret, Error *err);
bool sendgrid_test(
    const VendorAccount *account, int64_t now_us, Arena *arena, VendorRequest *ret, Error *err);
void sendgrid_read(const VendorAnswer *answer, Arena *arena, SendResult *ret);
