// SPDX-License-Identifier: Apache-2.0
// Mailgun's messages.mime: the whole mail as a file of a multipart form. Settings: domain (the
// sending one); base_url https://api.eu.mailgun.net for accounts there. No idempotency keys; an
// unknown outcome is asked for by the Message-ID, and the attempt by the user variables.
// Source: documentation.mailgun.com, "Send an email in MIME format", "Retrieves a paginated list of
// events", "API Response Codes".
#pragma once

#include "common/vendor/vendor_api.h"

enum { MAILGUN_ASK_MAX = 40 }; // events in the answer to mailgun_ask

extern const VendorApi mailgun_api;

bool mailgun_build(
    const VendorMail *mail, const VendorAccount *account, int64_t now_us, Arena *arena,
    VendorRequest *ret, Error *err);
// With o:testmode: accepted and not delivered (Mailgun bills it).
bool mailgun_rehearse(
    const VendorMail *mail, const VendorAccount *account, int64_t now_us, Arena *arena,
    VendorRequest *ret, Error *err);
bool mailgun_test(
    const VendorAccount *account, int64_t now_us, Arena *arena, VendorRequest *ret, Error *err);
bool mailgun_ask(
    const VendorMail *mail, const VendorAccount *account, int64_t now_us, Arena *arena,
    VendorRequest *ret, Error *err);
void mailgun_read(const VendorAnswer *answer, Arena *arena, SendResult *ret);
int mailgun_asked(
    const VendorAnswer *answer, const VendorMail *mail, Arena *arena, SendResult *ret);
