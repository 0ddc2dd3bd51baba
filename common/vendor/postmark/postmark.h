// SPDX-License-Identifier: Apache-2.0
// Postmark's API: one mail a call, as JSON. Settings: message_stream (else the server's default
// stream). No idempotency keys; an unknown outcome is asked for by Metadata.nid.
// Source: postmarkapp.com/developer/api (email, messages, server; overview: error codes).
#pragma once

#include "common/vendor/vendor_api.h"

extern const VendorApi postmark_api;

bool postmark_build(
    const VendorMail *mail, const VendorAccount *account, int64_t now_us, Arena *arena,
    VendorRequest *ret, Error *err);
bool postmark_rehearse(
    const VendorMail *mail, const VendorAccount *account, int64_t now_us, Arena *arena,
    VendorRequest *ret, Error *err);
bool postmark_test(
    const VendorAccount *account, int64_t now_us, Arena *arena, VendorRequest *ret, Error *err);
bool postmark_ask(
    const VendorMail *mail, const VendorAccount *account, int64_t now_us, Arena *arena,
    VendorRequest *ret, Error *err);
void postmark_read(const VendorAnswer *answer, Arena *arena, SendResult *ret);
int postmark_asked(
    const VendorAnswer *answer, const VendorMail *mail, Arena *arena, SendResult *ret);
