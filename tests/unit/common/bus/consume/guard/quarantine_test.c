// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/bus/consume/guard/quarantine.h"
#include "common/codec/event.h"
#include "stentor/v1/dead.pb-c.h"
#include "stentor/v1/deferred.pb-c.h"
#include "stentor/v1/status.pb-c.h"

#define NTF_ID "ntf_01KAGTQ5M0000000000000000A"
#define NOW_US INT64_C(1763648968320000)

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

static char *text(const char *s)
{
    return (char *)(uintptr_t)s; // read only
}

static Stentor__V1__Meta *meta_of(const char *tenant, const char *notification)
{
    Stentor__V1__Meta *meta = arena_alloc(arena, sizeof *meta);
    stentor__v1__meta__init(meta);
    meta->event_id = text("event-id-of-22-letters");
    meta->tenant = text(tenant);
    meta->notification_id = text(notification);
    return meta;
}

static Stentor__V1__NotificationRequest *request_of(const char *tenant, const char *notification)
{
    Stentor__V1__NotificationRequest *request = arena_alloc(arena, sizeof *request);
    stentor__v1__notification_request__init(request);
    request->meta = meta_of(tenant, notification);
    request->channel = STENTOR__V1__CHANNEL__CHANNEL_SMS;
    request->template_ = text("welcome");
    request->expires_at_us = NOW_US;
    request->resends = 2;
    return request;
}

static Stentor__V1__Rendered *rendered_of(const char *tenant, const char *notification)
{
    Stentor__V1__Rendered *rendered = arena_alloc(arena, sizeof *rendered);
    stentor__v1__rendered__init(rendered);
    rendered->meta = meta_of(tenant, notification);
    rendered->channel = STENTOR__V1__CHANNEL__CHANNEL_EMAIL;
    rendered->content_prefix_id = 77; // eight bytes on the wire
    rendered->resends = 3;
    return rendered;
}

static Str packed(const ProtobufCMessage *message)
{
    Str bytes;
    Error err;
    assert_true(event_pack(message, arena, &bytes, &err));
    return bytes;
}

static void finding_13_work_is_seen_without_being_unpacked(void **state)
{
    (void)state;
    Stentor__V1__Deferred scheduled, retry, cancel;
    PoisonWork work;
    Str request = packed(&request_of("acme", NTF_ID)->base);
    assert_true(poison_work("REQUEST_HIGH", request, STR("acme"), &work));
    assert_string_equal(work.notification_id, NTF_ID);
    assert_int_equal(work.channel, CHANNEL_SMS);
    assert_int_equal(work.resends, 2);
    Str rendered = packed(&rendered_of("acme", NTF_ID)->base);
    assert_true(poison_work("RENDERED_LOW", rendered, STR("acme"), &work));
    assert_int_equal(work.channel, CHANNEL_EMAIL);
    assert_int_equal(work.resends, 3);
    stentor__v1__deferred__init(&scheduled);
    scheduled.work_case = STENTOR__V1__DEFERRED__WORK_REQUEST;
    scheduled.request = request_of("acme", NTF_ID);
    assert_true(poison_work("DEFERRED", packed(&scheduled.base), STR("acme"), &work));
    assert_int_equal(work.resends, 2);
    stentor__v1__deferred__init(&retry);
    retry.work_case = STENTOR__V1__DEFERRED__WORK_RENDERED;
    retry.rendered = rendered_of("acme", NTF_ID);
    assert_true(poison_work("DEFERRED", packed(&retry.base), STR("acme"), &work));
    assert_int_equal(work.resends, 3);
    stentor__v1__deferred__init(&cancel);
    cancel.meta = meta_of("acme", NTF_ID);
    assert_false(poison_work("DEFERRED", packed(&cancel.base), STR("acme"), &work));
}

static void what_is_not_this_tenants_work_tells_nothing(void **state)
{
    (void)state;
    PoisonWork work;
    Stentor__V1__NotificationRequest *no_channel = request_of("acme", NTF_ID);
    no_channel->channel = STENTOR__V1__CHANNEL__CHANNEL_UNSPECIFIED;
    Str fine = packed(&request_of("acme", NTF_ID)->base);
    struct {
        const char *stream;
        Str payload;
    } rows[] = {
        {"REQUEST_HIGH", packed(&request_of("beta", NTF_ID)->base)},
        {"REQUEST_HIGH", packed(&request_of("acme", "ntf_short")->base)},
        {"REQUEST_HIGH", packed(&no_channel->base)},
        {"REQUEST_HIGH", STR_EMPTY},
        {"REQUEST_HIGH", STR("poison")},
        {"REQUEST_HIGH", STR("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")},
        {"SETTLE", fine},
        {"EVENTS", fine},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_false(poison_work(rows[i].stream, rows[i].payload, STR("acme"), &work));
    }
    for (size_t len = 0; len < fine.len; len++) { // cut anywhere: nothing, or what is right
        if (poison_work("REQUEST_HIGH", str_slice(fine, 0, len), STR("acme"), &work)) {
            assert_string_equal(work.notification_id, NTF_ID);
        }
    }
}

static Quarantine quarantined(const char *stream, const char *subject, Str payload)
{
    Quarantine left;
    BusMessage message = {
        .subject = str_from(subject),
        .payload = payload,
        .event_id = STR("event-id-of-22-letters"),
        .stream = stream,
        .sequence = 41,
        .stored_at_us = NOW_US - 1,
        .delivered = 6};
    assert_true(quarantine_pack(&message, "renderer", 5, NOW_US, arena, &left));
    return left;
}

static const Stentor__V1__DeadLetter *letter_of(const Quarantine *left)
{
    return (const Stentor__V1__DeadLetter *)(const void *)event_unpack(
        &stentor__v1__dead_letter__descriptor, left->letter.payload, arena, NULL);
}

static void finding_13_it_leaves_a_letter_and_the_end_of_its_notification(void **state)
{
    (void)state;
    Str payload = packed(&request_of("acme", NTF_ID)->base);
    Quarantine left = quarantined("REQUEST_HIGH", "ntf.request.high.acme", payload);
    assert_string_equal(letter_of(&left)->meta->notification_id, NTF_ID);
    assert_true(str_eq(pb_bytes(letter_of(&left)->payload), payload));
    assert_true(left.has_end);
    assert_string_equal(left.end.subject, "ntf.status.acme.sms.failed");
    const Stentor__V1__NotificationStatus *status =
        (const Stentor__V1__NotificationStatus *)(const void *)event_unpack(
            &stentor__v1__notification_status__descriptor, left.end.payload, arena, NULL);
    assert_string_equal(status->meta->notification_id, NTF_ID);
    assert_string_equal(status->meta->tenant, "acme");
    assert_string_equal(status->meta->causation_id, "event-id-of-22-letters");
    assert_int_equal(status->meta->occurred_at_us, NOW_US);
    assert_string_equal(status->reason_code, "poison_message");
    assert_non_null(strstr(status->reason, "5 processes in a row"));
    assert_int_equal(status->resends, 2);
    Quarantine again = quarantined("REQUEST_HIGH", "ntf.request.high.acme", payload);
    assert_true(str_eq(again.end.event_id, left.end.event_id));
    assert_true(str_eq(again.letter.event_id, left.letter.event_id));
}

static void what_is_about_no_notification_leaves_a_letter_only(void **state)
{
    (void)state;
    Quarantine left = quarantined("EVENTS", "evt.acme.notify", STR("poison"));
    assert_false(left.has_end);
    assert_string_equal(letter_of(&left)->meta->notification_id, "unknown");
    assert_string_equal(letter_of(&left)->meta->tenant, "acme");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(finding_13_work_is_seen_without_being_unpacked, begin, end),
        cmocka_unit_test_setup_teardown(what_is_not_this_tenants_work_tells_nothing, begin, end),
        cmocka_unit_test_setup_teardown(
            finding_13_it_leaves_a_letter_and_the_end_of_its_notification, begin, end),
        cmocka_unit_test_setup_teardown(
            what_is_about_no_notification_leaves_a_letter_only, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
