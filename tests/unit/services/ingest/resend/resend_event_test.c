// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/codec/event.h"
#include "services/ingest/resend/resend_event.h"
#include "stentor/v1/order.pb-c.h"

#define NTF "ntf_01KAGTQ5M0000000000000000A"

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

static DomainInput input_of(Str payload)
{
    return (DomainInput){
        .tenant = STR("acme"),
        .type = STR(RESEND_EVENT_TYPE),
        .payload = payload,
        .message_id = STR("item-1"),
        .stream = "EVENTS",
        .sequence = 7,
        .stored_at_us = INT64_C(1763648968320000),
    };
}

static void check(const ResendRequest *item)
{
    assert_true(str_eq(item->tenant, STR("acme")));
    assert_true(str_eq(item->identity, STR("item-1")));
    assert_true(str_eq(item->notification_id, STR(NTF)));
    assert_true(str_eq(item->requested_by, STR("ops")));
    assert_true(item->may_double);
    assert_false(item->ignore_expiry);
    assert_int_equal(item->created_us % 1000, 0);
    assert_true(item->created_us > INT64_C(1700000000000000));
}

static void json_and_protobuf_are_the_same_item(void **state)
{
    Arena *arena = *state;
    ResendRequest item;
    Error err = {0};
    DomainInput json = input_of(
        STR("{\"notification_id\":\"" NTF "\",\"requested_by\":\"ops\",\"may_double\":true}"));
    assert_true(resend_event_read(&json, arena, &item, &err));
    check(&item);
    DomainInput camel =
        input_of(STR("{\"NotificationId\":\"" NTF "\",\"requestedBy\":\"ops\",\"mayDouble\":true,"
                     "\"ignoreExpiry\":false}"));
    camel.type = STR("ResendErrorEmailIntegrationEvent");
    assert_true(resend_event_read(&camel, arena, &item, &err));
    check(&item);
    Stentor__V1__ResendErrorEmail event;
    stentor__v1__resend_error_email__init(&event);
    char ntf[] = NTF, ops[] = "ops";
    event.notification_id = ntf;
    event.requested_by = ops;
    event.may_double = true;
    Str bytes;
    assert_true(event_pack(&event.base, arena, &bytes, &err));
    DomainInput packed = input_of(bytes);
    packed.content_type = STR("application/protobuf");
    assert_true(resend_event_read(&packed, arena, &item, &err));
    check(&item);
}

static void its_letter_is_the_same_wish_without_headers(void **state)
{
    Arena *arena = *state;
    ResendRequest item, again;
    Error err = {0};
    DomainInput first = input_of(
        STR("{\"notification_id\":\"" NTF "\",\"requested_by\":\"ops\",\"may_double\":true}"));
    assert_true(resend_event_read(&first, arena, &item, &err));
    DomainInput letter = input_of(item.letter);
    letter.message_id = STR_EMPTY;
    assert_true(resend_event_read(&letter, arena, &again, &err));
    check(&again);
}

static void what_is_left_out_is_no(void **state)
{
    Arena *arena = *state;
    ResendRequest item;
    Error err = {0};
    DomainInput input =
        input_of(STR("{\"notification_id\":\"" NTF "\",\"requested_by\":null,\"other\":1}"));
    assert_true(resend_event_read(&input, arena, &item, &err));
    assert_int_equal(item.requested_by.len, 0);
    assert_false(item.may_double || item.ignore_expiry);
}

static void what_does_not_fit_names_the_field(void **state)
{
    Arena *arena = *state;
    static const char *const rows[][2] = {
        {"{}", "'notification_id'"},
        {"{\"notification_id\":null}", "'notification_id'"},
        {"{\"notification_id\":7}", "'notification_id'"},
        {"{\"notification_id\":\"rcp_01KAGTQ5M0000000000000000A\"}", "'notification_id'"},
        {"{\"notification_id\":\"" NTF "x\"}", "'notification_id'"},
        {"{\"notification_id\":\"" NTF "\",\"requested_by\":[]}", "'requested_by'"},
        {"{\"notification_id\":\"" NTF "\",\"requested_by\":\"a\\nb\"}", "'requested_by'"},
        {"{\"notification_id\":\"" NTF "\",\"may_double\":1}", "'may_double'"},
        {"{\"notification_id\":\"" NTF "\",\"ignore_expiry\":\"no\"}", "'ignore_expiry'"},
        {"[]", "ResendErrorEmail"},
        {"", "not JSON"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ResendRequest item;
        Error err = {0};
        DomainInput input = input_of(str_from(rows[i][0]));
        assert_false(resend_event_read(&input, arena, &item, &err));
        assert_int_equal(err.kind, ERROR_PERMANENT);
        if (strstr(err.text, rows[i][1]) == NULL) {
            fail_msg("%s: '%s' does not say %s", rows[i][0], err.text, rows[i][1]);
        }
    }
}

static void a_dead_letter_is_named_with_or_without_its_notification(void **state)
{
    Arena *arena = *state;
    ResendRequest item;
    Error err = {0};
    DomainInput alone = input_of(STR("{\"dead_letter\":4711}"));
    assert_true(resend_event_read(&alone, arena, &item, &err));
    assert_int_equal(item.dead_letter, 4711);
    assert_int_equal(item.notification_id.len, 0);
    DomainInput both = input_of(STR("{\"deadLetter\":4711,\"notification_id\":\"" NTF "\"}"));
    assert_true(resend_event_read(&both, arena, &item, &err));
    assert_int_equal(item.dead_letter, 4711);
    assert_true(str_eq(item.notification_id, STR(NTF)));
    DomainInput bad = input_of(STR("{\"dead_letter\":\"4711\"}"));
    assert_false(resend_event_read(&bad, arena, &item, &err));
    assert_non_null(strstr(err.text, "field 'dead_letter'"));
    DomainInput negative = input_of(STR("{\"dead_letter\":-1}"));
    assert_false(resend_event_read(&negative, arena, &item, &err));
    DomainInput none = input_of(STR("{\"dead_letter\":0}"));
    assert_false(resend_event_read(&none, arena, &item, &err));
    assert_non_null(strstr(err.text, "field 'notification_id'"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(json_and_protobuf_are_the_same_item),
        TEST(a_dead_letter_is_named_with_or_without_its_notification),
        TEST(its_letter_is_the_same_wish_without_headers),
        TEST(what_is_left_out_is_no),
        TEST(what_does_not_fit_names_the_field),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
