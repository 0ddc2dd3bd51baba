// SPDX-License-Identifier: Apache-2.0
// WhatsApp by Meta's Cloud API: JSON to the business's own number, a Bearer token. Settings:
// phone_number_id, and `version` of the API. A message is a template of Meta's by its name, with
// its language and parameters, or free text, which Meta takes for 24 hours after the recipient
// wrote (131047: the window is closed). No idempotency keys, and no way to ask: the attempt is
// named by biz_opaque_callback_data, which the reports of the message repeat.
//
// A reference is a template's name, `order_shipped`, or with words behind it that say which of the
// parameters are not the body's: `login_code;button` (the last one is the button's),
// `invoice;header` (the first one is the header's), `invoice;header;button;button`.
// Source: developers.facebook.com, "WhatsApp Cloud API", "Error codes".
#pragma once

#include "common/vendor/vendor_api.h"

enum { META_TEXT_MAX = 4096, META_TEMPLATE_MAX = 512, META_BUTTONS_MAX = 10 };

extern const VendorApi meta_api;

bool meta_build(
    const VendorMail *mail, const VendorAccount *account, int64_t now_us, Arena *arena,
    VendorRequest *ret, Error *err);
bool meta_test(
    const VendorAccount *account, int64_t now_us, Arena *arena, VendorRequest *ret, Error *err);
void meta_read(const VendorAnswer *answer, Arena *arena, SendResult *ret);
// What its codes mean to a caller.
extern const VendorReason meta_reasons[];
