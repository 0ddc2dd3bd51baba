// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "common/codec/event.h"
#include "services/gateway/live/live_event.h"
#include "stentor/v1/status.pb-c.h"

static Arena *arena;

static BusMessage message_of(const char *subject, const char *tenant)
{
    Stentor__V1__NotificationStatus status;
    Stentor__V1__Meta meta;
    Error err = {0};
    stentor__v1__notification_status__init(&status);
    stentor__v1__meta__init(&meta);
    meta.tenant = pb_borrow(tenant);
    meta.notification_id = pb_borrow("ntf_1");
    meta.occurred_at_us = 1;
    status.meta = &meta;
    status.status = STENTOR__V1__STATUS__STATUS_SENT;
    status.channel = STENTOR__V1__CHANNEL__CHANNEL_EMAIL;
    status.template_ = pb_borrow("welcome");
    status.address_hash = pb_data(STR("0123456789abcdef0123456789abcdef"));
    BusMessage message = {.subject = str_from(subject)};
    assert_true(event_pack(&status.base, arena, &message.payload, &err));
    return message;
}

static void names_become_bits_and_a_wrong_one_is_named(void **state)
{
    (void)state;
    uint32_t mask = 0;
    Str wrong = STR_EMPTY;
    assert_true(live_statuses(STR("sent,failed"), &mask, &wrong));
    assert_int_equal(mask, 1u << STATUS_SENT | 1u << STATUS_FAILED);
    assert_true(live_statuses(STR(""), &mask, &wrong));
    assert_int_equal(mask, 0);
    assert_false(live_statuses(STR("sent,lost"), &mask, &wrong));
    assert_true(str_eq(wrong, STR("lost")));
    assert_false(live_channels(STR("email,"), &mask, &wrong));
    assert_int_equal(wrong.len, 0);
}

static void a_subject_says_whose_it_is(void **state)
{
    (void)state;
    LivePlace place;
    assert_true(live_place(STR("live.status.acme.email.sent"), &place));
    assert_true(str_eq(place.tenant, STR("acme")));
    assert_int_equal(place.channel, CHANNEL_EMAIL);
    assert_int_equal(place.status, STATUS_SENT);
    static const char *const none[] = {
        "live.status.acme.email", "live.status.acme.email.sent.x", "live.status.acme.pigeon.sent",
        "live.status.acme.email.lost", ""};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_false(live_place(str_from(none[i]), &place));
    }
}

static void the_log_is_read_by_the_narrowest_subject(void **state)
{
    (void)state;
    static const struct {
        LiveFilter filter;
        const char *subject;
    } rows[] = {
        {{0}, "ntf.status.acme.*.*"},
        {{.statuses = 1u << STATUS_FAILED}, "ntf.status.acme.*.failed"},
        {{.channels = 1u << CHANNEL_SMS, .statuses = 1u << STATUS_SENT | 1u << STATUS_FAILED},
         "ntf.status.acme.sms.*"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char subject[160];
        live_subject(STR("acme"), &rows[i].filter, subject, sizeof subject);
        assert_string_equal(subject, rows[i].subject);
    }
}

static void an_event_is_a_webhooks_json_under_its_sequence(void **state)
{
    (void)state;
    LiveEvent event;
    Error err = {0};
    BusMessage message = message_of("live.status.acme.email.sent", "acme");
    assert_true(live_event_read(&message, 42, arena, &event, &err));
    assert_true(str_starts(
        event.text, STR("id: 42\nevent: status\ndata: {\"type\":\"notification.sent\",")));
    assert_true(str_ends(event.text, STR("}\n\n")));
    assert_true(str_contains(event.text, STR("\"id\":\"ntf_1\"")));
    assert_false(str_contains(event.text, STR("0123456789abcdef")));
    assert_true(str_eq(event.template_, STR("welcome")));
}

static void what_is_not_its_subjects_tenants_is_no_event(void **state)
{
    (void)state;
    LiveEvent event;
    Error err = {0};
    BusMessage message = message_of("live.status.acme.email.sent", "beta");
    assert_false(live_event_read(&message, 1, arena, &event, &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
    message.payload = STR("\xff\xff");
    assert_false(live_event_read(&message, 1, arena, &event, &err));
}

static void a_filter_lets_through_what_it_names(void **state)
{
    (void)state;
    LiveEvent event;
    Error err = {0};
    BusMessage message = message_of("live.status.acme.email.sent", "acme");
    assert_true(live_event_read(&message, 1, arena, &event, &err));
    static const struct {
        LiveFilter filter;
        bool fits;
    } rows[] = {
        {{0}, true},
        {{.channels = 1u << CHANNEL_EMAIL}, true},
        {{.channels = 1u << CHANNEL_SMS}, false},
        {{.statuses = 1u << STATUS_SENT | 1u << STATUS_FAILED}, true},
        {{.statuses = 1u << STATUS_FAILED}, false},
        {{.template_ = "welcome"}, true},
        {{.template_ = "other"}, false},
        {{.notification_id = "ntf_1"}, true},
        {{.notification_id = "ntf_2"}, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(live_fits(&rows[i].filter, &event), rows[i].fits);
    }
}

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

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(names_become_bits_and_a_wrong_one_is_named),
        TEST(a_subject_says_whose_it_is),
        TEST(the_log_is_read_by_the_narrowest_subject),
        TEST(an_event_is_a_webhooks_json_under_its_sequence),
        TEST(what_is_not_its_subjects_tenants_is_no_event),
        TEST(a_filter_lets_through_what_it_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
