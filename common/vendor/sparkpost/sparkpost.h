// SPDX-License-Identifier: Apache-2.0
// SparkPost's Transmissions: the whole mail (content.email_rfc822) with an Idempotency-Key that it
// knows for 24 hours: the same call again sends nothing twice. Settings: bounce_domain (return
// paths in it are its return_path), subaccount; base_url https://api.eu.sparkpost.com for accounts
// there. It replaces "{{..}}" in a mail's text, which cannot be switched off.
// Source: SparkPost/developers.sparkpost.com content/api/transmissions.apib and pull request 590;
// SparkPost/support-docs, extended error codes.
#pragma once

#include "common/vendor/vendor_api.h"

extern const VendorApi sparkpost_api;

bool sparkpost_build(
    const VendorMail *mail, const VendorAccount *account, int64_t now_us, Arena *arena,
    VendorRequest *ret, Error *err);
// A transmission without recipients, which 422 answers when the key is good. (A key may have the
// right to send and no other.)
bool sparkpost_test(
    const VendorAccount *account, int64_t now_us, Arena *arena, VendorRequest *ret, Error *err);
void sparkpost_read(const VendorAnswer *answer, Arena *arena, SendResult *ret);
