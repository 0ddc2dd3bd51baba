// SPDX-License-Identifier: Apache-2.0
// Telnyx's messages for SMS: JSON, authorized by the API key, which is the credential's secret.
// Settings: from (vendor_text.h), messaging_profile (with a name as the sender, or alone: the
// profile's number pool). No idempotency keys: its `Idempotency-Key` holds for endpoints that
// declare it, and the one of messages does not. It cannot be asked for a message without its id.
// The attempt is named by the URL of its reports.
// Source: developers.telnyx.com, "Send a message", "Messaging error codes", "Receiving webhooks",
// "Idempotency"; telnyx-python src/telnyx/types/message_send_params.py.
#pragma once

#include "common/vendor/vendor_api.h"

enum { TELNYX_TEXT_MAX = 1530 }; // UTF-16 units: ten parts

extern const VendorApi telnyx_api;
extern const VendorReason telnyx_reasons[];

bool telnyx_build(
    const VendorMail *mail, const VendorAccount *account, int64_t now_us, Arena *arena,
    VendorRequest *ret, Error *err);
bool telnyx_test(
    const VendorAccount *account, int64_t now_us, Arena *arena, VendorRequest *ret, Error *err);
void telnyx_read(const VendorAnswer *answer, Arena *arena, SendResult *ret);
