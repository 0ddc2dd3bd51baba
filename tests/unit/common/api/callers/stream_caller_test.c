// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/api/callers/stream_caller.h"

static const ApiRoute ROUTE = {.scope = SCOPE_NOTIFICATIONS_READ};

static void a_persons_stream_stands_for_a_minute_and_then_asks_again(void **state)
{
    (void)state;
    const ApiCall call = {.route = &ROUTE, .person = true, .key_id = STR("user ada")};
    int64_t now_us = INT64_C(1000000000000);
    int64_t minute_us = STREAM_CALLER_PERSON_S * INT64_C(1000000);
    StreamCaller caller;
    stream_caller_init(&caller, &call, now_us);
    assert_int_equal(stream_caller_stands(&caller, NULL, now_us), STREAM_STANDS);
    assert_int_equal(stream_caller_stands(&caller, NULL, now_us + minute_us - 1), STREAM_STANDS);
    assert_int_equal(stream_caller_stands(&caller, NULL, now_us + minute_us), STREAM_AGAIN);
}

static void a_keys_stream_is_over_when_no_such_key_is_known(void **state)
{
    (void)state;
    const ApiCall call = {.route = &ROUTE, .key_id = STR("5349222e14fb3dde")};
    Auth *auth = auth_new();
    StreamCaller caller;
    stream_caller_init(&caller, &call, 1);
    assert_int_equal(stream_caller_stands(&caller, auth, 2), STREAM_OVER);
    auth_free(auth);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_persons_stream_stands_for_a_minute_and_then_asks_again),
        cmocka_unit_test(a_keys_stream_is_over_when_no_such_key_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
