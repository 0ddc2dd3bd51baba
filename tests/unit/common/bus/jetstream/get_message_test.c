// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/arena.h"
#include "common/bus/jetstream/get_message.h"

static int set_up(void **state)
{
    *state = arena_new(0);
    return 0;
}

static int tear_down(void **state)
{
    arena_free(*state);
    return 0;
}

static void an_answer_is_a_message(void **state)
{
    Arena *arena = *state;
    BusMessage message;
    bool found = false;
    Error err = {0};
    // "NATS/1.0\r\nNats-Msg-Id: abc\r\ntraceparent: 00-1\r\n\r\n" and "hello"
    const char *reply =
        "{\"type\":\"io.nats.jetstream.api.v1.stream_msg_get_response\",\"message\":{\"subject\":"
        "\"ntf.dead.renderer.demo\",\"seq\":9,\"hdrs\":"
        "\"TkFUUy8xLjANCk5hdHMtTXNnLUlkOiBhYmMNCnRyYWNlcGFyZW50OiAwMC0xDQoNCg==\",\"data\":"
        "\"aGVsbG8=\",\"time\":\"2025-11-20T14:29:28.320000001Z\"}}";
    assert_true(get_message_reply(str_from(reply), "DEAD", arena, &message, &found, &err));
    assert_true(found);
    assert_string_equal(message.stream, "DEAD");
    assert_true(str_eq(message.subject, STR("ntf.dead.renderer.demo")));
    assert_int_equal(message.sequence, 9);
    assert_int_equal(message.stored_at_us, INT64_C(1763648968320000));
    assert_int_equal(message.delivered, 1);
    assert_false(message.replayed);
    assert_true(str_eq(message.payload, STR("hello")));
    assert_true(str_eq(message.event_id, STR("abc")));
    assert_true(str_eq(message.traceparent, STR("00-1")));
}

static void a_message_without_bytes_or_headers_is_one(void **state)
{
    BusMessage message;
    bool found = false;
    assert_true(get_message_reply(
        STR("{\"message\":{\"subject\":\"a\",\"seq\":1,\"time\":\"2025-11-20T14:29:28Z\"}}"),
        "CONFIG", *state, &message, &found, NULL));
    assert_true(found);
    assert_int_equal(message.payload.len, 0);
    assert_int_equal(message.event_id.len, 0);
}

static void a_copy_made_by_a_replay_says_so(void **state)
{
    BusMessage message;
    bool found = false;
    // "NATS/1.0\r\nStentor-Replay: run7\r\n\r\n"
    assert_true(get_message_reply(
        STR("{\"message\":{\"subject\":\"a\",\"seq\":1,\"hdrs\":"
            "\"TkFUUy8xLjANClN0ZW50b3ItUmVwbGF5OiBydW43DQoNCg==\",\"time\":\"2025-11-20T14:29:"
            "28Z\"}}"),
        "STATUS", *state, &message, &found, NULL));
    assert_true(message.replayed);
}

static void no_message_is_no_error(void **state)
{
    BusMessage message;
    bool found = true;
    Error err = {0};
    assert_true(get_message_reply(
        STR("{\"error\":{\"code\":404,\"err_code\":10037,\"description\":\"no message found\"}}"),
        "DEAD", *state, &message, &found, &err));
    assert_false(found);
    assert_int_equal(message.sequence, 0);
    assert_int_equal(message.payload.len, 0);
    assert_int_equal(err.kind, ERROR_NONE);
}

static void a_refusal_says_whether_to_try_again(void **state)
{
    static const struct {
        const char *reply;
        ErrorKind kind;
        const char *because;
    } bad[] = {
        {"", ERROR_PERMANENT, "not a stored message"},
        {"{}", ERROR_PERMANENT, "not a stored message"},
        {"{\"message\":7}", ERROR_PERMANENT, "not a stored message"},
        {"{\"error\":{\"code\":404,\"err_code\":10059,\"description\":\"stream not found\"}}",
         ERROR_PERMANENT, "stream 'DEAD': stream not found"},
        {"{\"error\":{\"code\":503,\"err_code\":10008,\"description\":\"not now\"}}",
         ERROR_TRANSIENT, "not now"},
        {"{\"error\":{}}", ERROR_PERMANENT, "JetStream refused"},
        {"{\"message\":{\"seq\":1,\"data\":\"!!\",\"time\":\"2025-11-20T14:29:28Z\"}}",
         ERROR_PERMANENT, "'data' of the stored message is not base64"},
        {"{\"message\":{\"seq\":1,\"hdrs\":\"!!\",\"time\":\"2025-11-20T14:29:28Z\"}}",
         ERROR_PERMANENT, "'hdrs' of the stored message is not base64"},
        {"{\"message\":{\"seq\":1,\"data\":\"\"}}", ERROR_PERMANENT, "'time'"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        BusMessage message = {.sequence = 77};
        bool found = true;
        Error err = {0};
        assert_false(
            get_message_reply(str_from(bad[i].reply), "DEAD", *state, &message, &found, &err));
        assert_int_equal(err.kind, bad[i].kind);
        assert_non_null(strstr(err.text, bad[i].because));
        assert_int_equal(message.sequence, 77); // written only on success
        assert_true(found);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_answer_is_a_message, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_message_without_bytes_or_headers_is_one, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_copy_made_by_a_replay_says_so, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_message_is_no_error, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_refusal_says_whether_to_try_again, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
