// SPDX-License-Identifier: Apache-2.0
// What the tests of vendors that reach a phone number share.
#pragma once

#include "tests/unit/common/vendor/vendor_case.h"

static inline VendorMail case_text(const char *text)
{
    return (VendorMail){
        .tenant = STR("acme"),
        .notification_id = STR(CASE_NID),
        .attempt = 2,
        .key = STR(CASE_NID "-2"),
        .to = {STR_EMPTY, STR("+4915112345678")},
        .text = str_from(text),
        .callback_url = STR("https://hooks.example.com/v1/inbound/acme/x/cap?attempt=tok"),
    };
}
