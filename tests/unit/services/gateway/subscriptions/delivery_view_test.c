// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <stdlib.h>

#include "services/gateway/subscriptions/delivery_view.h"

static void assert_json(json_t *object, const char *expected)
{
    char *text = json_dumps(object, JSON_COMPACT | JSON_SORT_KEYS);
    assert_string_equal(text, expected);
    free(text);
    json_decref(object);
}

static DeliveryRow make_row(void)
{
    return (DeliveryRow){
        .id = STR("whd_1"),
        .subscription_id = STR("whs_1"),
        .event_id = STR("e1"),
        .type = STR("notification.sent"),
        .notification_id = STR("ntf_1"),
        .state = STR("queued"),
        .created_at_us = 1000000,
    };
}

static void what_was_never_tried_has_no_attempt(void **state)
{
    (void)state;
    DeliveryRow row = make_row();
    assert_json(
        delivery_view(&row),
        "{\"attempts\":0,\"created_at\":\"1970-01-01T00:00:01.000000Z\","
        "\"event\":\"notification.sent\",\"id\":\"whd_1\",\"notification_id\":\"ntf_1\","
        "\"state\":\"queued\",\"subscription_id\":\"whs_1\",\"webhook_id\":\"e1\"}");
}

static void a_test_is_about_no_notification(void **state)
{
    (void)state;
    DeliveryRow row = make_row();
    row.notification_id = STR_EMPTY;
    json_t *object = delivery_view(&row);
    assert_null(json_object_get(object, "notification_id"));
    json_decref(object);
}

static void the_last_attempt_says_what_came_of_it(void **state)
{
    (void)state;
    DeliveryRow row = make_row();
    row.attempts = 2;
    row.finished_at_us = 3000000;
    row.next_attempt_at_us = 8000000;
    row.error = STR("timeout");
    row.duration_ms = 15000;
    json_t *object = delivery_view(&row);
    json_t *last = json_object_get(object, "last_attempt");
    assert_null(json_object_get(last, "status_code")); // there was no answer
    assert_string_equal(json_string_value(json_object_get(last, "error")), "timeout");
    assert_int_equal(json_integer_value(json_object_get(last, "duration_ms")), 15000);
    assert_string_equal(
        json_string_value(json_object_get(object, "next_attempt_at")),
        "1970-01-01T00:00:08.000000Z");
    json_decref(object);
}

static void the_whole_has_what_is_posted_as_json(void **state)
{
    (void)state;
    DeliveryRow row = make_row();
    row.payload = STR("{\"type\":\"notification.sent\"}");
    json_t *object = delivery_view_whole(&row);
    const json_t *payload = json_object_get(object, "payload");
    assert_string_equal(json_string_value(json_object_get(payload, "type")), "notification.sent");
    json_decref(object);
    row.payload = STR("{");
    object = delivery_view_whole(&row);
    assert_null(json_object_get(object, "payload"));
    json_decref(object);
}

static void each_state_of_a_row_is_a_filter_and_nothing_else_is(void **state)
{
    (void)state;
    assert_true(delivery_is_state(STR("queued")));
    assert_true(delivery_is_state(STR("claimed")));
    assert_true(delivery_is_state(STR("waiting")));
    assert_true(delivery_is_state(STR("delivered")));
    assert_true(delivery_is_state(STR("failed")));
    assert_false(delivery_is_state(STR("fail")));
    assert_false(delivery_is_state(STR("")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_never_tried_has_no_attempt),
        cmocka_unit_test(a_test_is_about_no_notification),
        cmocka_unit_test(the_last_attempt_says_what_came_of_it),
        cmocka_unit_test(the_whole_has_what_is_posted_as_json),
        cmocka_unit_test(each_state_of_a_row_is_a_filter_and_nothing_else_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
