// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "common/codec/event.h"
#include "services/webhook-receiver/link_endpoint.h"
#include "stentor/v1/status.pb-c.h"

#define NOW_US (INT64_C(1790000000) / 60 * 60 * 1000000) // the beginning of a minute

static const MailLink LINK = {
    .kind = MAIL_LINK_CLICK,
    .tenant = {"acme", 4},
    .notification_id = {"ntf_01M2V3W4X5Y6Z7A8B9CADBECFD", 30},
    .index = 3,
    .url = {"https://a.test/", 15},
};

static Arena *arena;

static int begin(void **state)
{
    (void)state;
    arena = arena_new(0);
    return 0;
}

static int end(void **state)
{
    (void)state;
    arena_free(arena);
    return 0;
}

static BusOut event(const MailLink *link, bool machine, int64_t at_us, BusOut *ret_settle)
{
    BusOut status;
    Error err = {0};
    assert_true(link_events(link, machine, at_us, arena, &status, ret_settle, &err));
    return status;
}

static const Stentor__V1__NotificationStatus *read(const BusOut *out)
{
    Error err = {0};
    const void *status =
        event_unpack(&stentor__v1__notification_status__descriptor, out->payload, arena, &err);
    assert_non_null(status);
    return status;
}

static void a_click_is_a_status_of_its_notification_and_a_proof(void **state)
{
    (void)state;
    BusOut settle;
    BusOut out = event(&LINK, false, NOW_US, &settle);
    assert_string_equal(out.subject, "ntf.status.acme.email.clicked");
    assert_string_equal(settle.subject, "ntf.settle.acme");
    assert_true(str_eq(settle.payload, out.payload));
    assert_false(str_eq(settle.event_id, out.event_id));
    const Stentor__V1__NotificationStatus *status = read(&out);
    assert_string_equal(status->meta->notification_id, "ntf_01M2V3W4X5Y6Z7A8B9CADBECFD");
    assert_int_equal(status->meta->occurred_at_us, NOW_US);
    assert_int_equal(status->attempt->number, 0);
    assert_int_equal(status->attempt->link, 3);
    assert_false(status->attempt->machine);
}

static void an_open_by_a_machine_says_so(void **state)
{
    (void)state;
    BusOut settle;
    MailLink pixel = LINK;
    pixel.kind = MAIL_LINK_OPEN;
    pixel.index = 0;
    BusOut out = event(&pixel, true, NOW_US, &settle);
    assert_string_equal(out.subject, "ntf.status.acme.email.opened");
    assert_true(read(&out)->attempt->machine);
}

static void one_link_has_one_event_a_minute_and_a_machine_hides_no_recipient(void **state)
{
    (void)state;
    BusOut settle;
    MailLink other = LINK;
    other.index = 4;
    BusOut first = event(&LINK, false, NOW_US, &settle);
    BusOut same = event(&LINK, false, NOW_US + 59999999, &settle);
    BusOut later = event(&LINK, false, NOW_US + 60000000, &settle);
    BusOut machine = event(&LINK, true, NOW_US, &settle);
    BusOut another = event(&other, false, NOW_US, &settle);
    assert_true(str_eq(first.event_id, same.event_id));
    assert_false(str_eq(first.event_id, later.event_id));
    assert_false(str_eq(first.event_id, machine.event_id));
    assert_false(str_eq(first.event_id, another.event_id));
}

static void a_location_is_ascii(void **state)
{
    (void)state;
    Str got = link_location(STR("https://a.test/\xc3\xa4?x=%20#y"), arena);
    assert_true(str_eq(got, STR("https://a.test/%C3%A4?x=%20#y")));
}

static void only_its_own_paths_are_its(void **state)
{
    (void)state;
    assert_true(link_is_path(STR("/v1/click/lnk_x")));
    assert_true(link_is_path(STR("/v1/open/lnk_x.gif")));
    assert_false(link_is_path(STR("/v1/opt-out/oot_x")));
    assert_false(link_is_path(STR("/v1/click")));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(a_click_is_a_status_of_its_notification_and_a_proof),
        TEST(an_open_by_a_machine_says_so),
        TEST(one_link_has_one_event_a_minute_and_a_machine_hides_no_recipient),
        TEST(a_location_is_ascii),
        TEST(only_its_own_paths_are_its),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
