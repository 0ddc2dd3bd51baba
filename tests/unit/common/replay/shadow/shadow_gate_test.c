// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "common/replay/shadow/shadow_gate.h"

static const int64_t NOW = INT64_C(1800000000) * 1000000;

static void the_gate_stops_the_expired_and_the_suspended(void **state)
{
    (void)state;
    Stentor__V1__NotificationRequest request;
    stentor__v1__notification_request__init(&request);
    ShadowRules open = {.tenant_suspended = false};
    ShadowRules shut = {.tenant_suspended = true};
    assert_int_equal(shadow_gate(&open, &request, NOW), SHADOW_PASSED);
    assert_int_equal(shadow_gate(&shut, &request, NOW), SHADOW_SUPPRESSED);
    request.expires_at_us = NOW + 1;
    assert_int_equal(shadow_gate(&open, &request, NOW), SHADOW_PASSED);
    request.expires_at_us = NOW;
    assert_int_equal(shadow_gate(&shut, &request, NOW), SHADOW_EXPIRED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_gate_stops_the_expired_and_the_suspended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
