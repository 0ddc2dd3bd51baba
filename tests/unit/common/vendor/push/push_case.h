// SPDX-License-Identifier: Apache-2.0
// A push, as the vendors of pushes get it.
#pragma once

#include "tests/unit/common/vendor/jwt_case.h"
#include "tests/unit/common/vendor/vendor_case.h"

static inline VendorMail case_push(Str to)
{
    return (VendorMail){
        .tenant = STR("acme"),
        .notification_id = STR(CASE_NID),
        .attempt = 2,
        .to = {.address = to},
        .subject = STR("Your order"),
        .text = STR("It is \"there\" \xe2\x98\x83"),
        .data = STR("{\"order\":17,\"link\":\"/o/17\"}"),
        .urgent = true,
        .expires_at_us = CASE_READ_US + INT64_C(600) * 1000000,
    };
}
