// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/codec/hash.h"
#include "common/deadletter/dlq_end.h"
#include "stentor/v1/status.pb-c.h"
#include "tests/unit/common/deadletter/dead_letters.h"

typedef Stentor__V1__NotificationStatus Ended;

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

// NULL: the letter needs no end.
static const Ended *end_of(Arena *arena, const Letter *letter)
{
    BusOut out = {0};
    bool needed = false;
    Error err = {0};
    assert_true(letter_end(letter, arena, &out, &needed, &err));
    return needed ? (const Ended *)(const void *)event_unpack(
                        &stentor__v1__notification_status__descriptor, out.payload, arena, &err)
                  : NULL;
}

static Letter letter_with(Arena *arena, const char *subject, const ProtobufCMessage *work)
{
    DeadLetter *body = letter_new(arena, subject, packed(arena, work));
    body->reason = text_of("the template is gone");
    return read_letter(arena, body);
}

static void assert_ended(const Ended *end, const char *place)
{
    char id[EVENT_ID_SIZE];
    event_id_derive("status", STR(NTF_ID), str_from(place), id);
    assert_non_null(end);
    assert_string_equal(end->meta->event_id, id);
    assert_string_equal(end->meta->tenant, "demo");
    assert_string_equal(end->meta->notification_id, NTF_ID);
    assert_string_equal(end->meta->correlation_id, "corr-1");
    assert_string_equal(end->meta->causation_id, "letter-event-id-000022");
    assert_int_equal(end->meta->occurred_at_us, NOW_US - 90 * 1000000);
    assert_int_equal(end->status, STENTOR__V1__STATUS__STATUS_FAILED);
    assert_string_equal(end->reason_code, "dropped");
    assert_string_equal(end->reason, "an operator dropped its dead letter");
}

static Stentor__V1__NotificationRequest request_of(Arena *arena)
{
    Stentor__V1__NotificationRequest request;
    stentor__v1__notification_request__init(&request);
    request.meta = meta_new(arena, "request-event-id-00022");
    request.channel = STENTOR__V1__CHANNEL__CHANNEL_EMAIL;
    request.template_ = text_of("welcome");
    request.batch_id = text_of("bat_1");
    request.resends = 2;
    return request;
}

static void a_dropped_request_ends_with_what_it_was(void **state)
{
    Arena *arena = *state;
    Stentor__V1__NotificationRequest request = request_of(arena);
    Letter letter = letter_with(arena, "ntf.request.normal.demo", &request.base);
    const Ended *end = end_of(arena, &letter);
    assert_ended(end, "failed/0");
    assert_string_equal(end->template_, "welcome");
    assert_string_equal(end->batch_id, "bat_1"); // its campaign counts it
    assert_int_equal(end->resends, 2);
}

static void a_dropped_mail_ends_as_its_attempt(void **state)
{
    Arena *arena = *state;
    Rendered *mail = rendered_new(arena);
    Letter letter = letter_with(arena, "ntf.rendered.normal.demo", &mail->base);
    const Ended *end = end_of(arena, &letter);
    assert_ended(end, "failed/6");
    assert_int_equal(end->content_checksum.len, 3);
}

static void a_dropped_wait_ends_as_what_waited(void **state)
{
    Arena *arena = *state;
    Stentor__V1__NotificationRequest request = request_of(arena);
    Stentor__V1__Deferred deferred;
    stentor__v1__deferred__init(&deferred);
    deferred.meta = meta_new(arena, "deferred-event-id-0022");
    deferred.work_case = STENTOR__V1__DEFERRED__WORK_REQUEST;
    deferred.request = &request;
    Letter of_request = letter_with(arena, "ntf.deferred.quiet_hours.demo", &deferred.base);
    assert_ended(end_of(arena, &of_request), "failed/0");
    deferred.work_case = STENTOR__V1__DEFERRED__WORK_RENDERED;
    deferred.rendered = rendered_new(arena);
    Letter of_mail = letter_with(arena, "ntf.deferred.retry.demo", &deferred.base);
    assert_ended(end_of(arena, &of_mail), "failed/6");
}

static void a_letter_with_an_end_or_without_a_notification_needs_none(void **state)
{
    Arena *arena = *state;
    Rendered *mail = rendered_new(arena);
    Letter reported = mail_letter(arena, mail); // retries_exhausted
    assert_null(end_of(arena, &reported));
    Letter history = letter_with(arena, "ntf.rendered.normal.demo", &mail->base);
    history.stage = STR("archiver");
    assert_null(end_of(arena, &history));
    mail->meta->notification_id = text_of("none");
    Letter headless = letter_with(arena, "ntf.rendered.normal.demo", &mail->base);
    assert_null(end_of(arena, &headless));
    Letter unread = read_letter(arena, letter_new(arena, "ntf.rendered.normal.demo", STR("\xff")));
    assert_null(end_of(arena, &unread));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_dropped_request_ends_with_what_it_was, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_dropped_mail_ends_as_its_attempt, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_dropped_wait_ends_as_what_waited, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_letter_with_an_end_or_without_a_notification_needs_none, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
