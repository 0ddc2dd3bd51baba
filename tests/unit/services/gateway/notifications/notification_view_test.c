// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/bus/events/frames.h"
#include "common/codec/event.h"
#include "services/gateway/notifications/notification_view.h"
#include "stentor/v1/request.pb-c.h"
#include "stentor/v1/status.pb-c.h"

#define ALICE "ntf_01M83AVY1NCDCG3Y6T3Y82BH3P"
#define BOB "ntf_01M83AVY1NCDCG3Y6T3Y82BH3Q"

static const int64_t accepted_at_us = INT64_C(1795408394293123);

static Frame status_frame(Arena *arena, const char *tenant, const char *id, const char *reason)
{
    Stentor__V1__Meta meta;
    Stentor__V1__NotificationStatus event;
    stentor__v1__meta__init(&meta);
    stentor__v1__notification_status__init(&event);
    meta.tenant = arena_printf(arena, "%s", tenant);
    meta.event_id = arena_printf(arena, "AAAAAAAAAAAAAAAAAAAAAA");
    meta.notification_id = arena_printf(arena, "%s", id);
    meta.occurred_at_us = accepted_at_us;
    event.meta = &meta;
    event.channel = (Stentor__V1__Channel)CHANNEL_EMAIL;
    event.status = (Stentor__V1__Status)STATUS_SUPPRESSED;
    event.reason_code = arena_printf(arena, "%s", reason);
    event.template_ = arena_printf(arena, "welcome");
    Frame frame = {FRAME_STATUS, {.subject = "ntf.status.acme.email.suppressed"}};
    frame.out.event_id = STR("AAAAAAAAAAAAAAAAAAAAAA");
    Error err;
    assert_true(event_pack(&event.base, arena, &frame.out.payload, &err));
    return frame;
}

static Frame request_frame(Arena *arena, const char *id, const char *gate_trace)
{
    Stentor__V1__Meta meta;
    Stentor__V1__NotificationRequest event;
    stentor__v1__meta__init(&meta);
    stentor__v1__notification_request__init(&event);
    meta.tenant = arena_printf(arena, "acme");
    meta.notification_id = arena_printf(arena, "%s", id);
    event.meta = &meta;
    event.channel = (Stentor__V1__Channel)CHANNEL_EMAIL;
    event.gate_trace = arena_printf(arena, "%s", gate_trace);
    Frame frame = {FRAME_REQUEST, {.subject = "ntf.request.normal.acme"}};
    frame.out.event_id = STR("BBBBBBBBBBBBBBBBBBBBBB");
    assert_true(event_pack(&event.base, arena, &frame.out.payload, NULL));
    return frame;
}

static Str accept_row(const Frame *frames, size_t count, Arena *arena)
{
    Str packed = frames_pack(frames, count, arena);
    char *row = arena_alloc(arena, FRAMES_HEAD.len + packed.len);
    memcpy(row, FRAMES_HEAD.ptr, FRAMES_HEAD.len);
    memcpy(row + FRAMES_HEAD.len, packed.ptr, packed.len);
    return str_of(row, FRAMES_HEAD.len + packed.len);
}

static void the_accept_log_shows_the_status_of_the_one_that_is_asked_for(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    Frame deferred = {FRAME_DEFERRED, {.subject = "ntf.deferred.limit.acme", .payload = STR("x")}};
    deferred.out.event_id = STR("CCCCCCCCCCCCCCCCCCCCCC");
    Frame frames[] = {
        deferred, request_frame(arena, BOB, "T+S+A+"), status_frame(arena, "acme", BOB, "opt_out"),
        request_frame(arena, ALICE, "T+S-"), status_frame(arena, "acme", ALICE, "hard_bounce")};
    Str events = accept_row(frames, 5, arena);
    HistoryRow row;
    Error err = {0};
    if (!notification_of_events(
            events, accepted_at_us, STR("acme"), STR(ALICE), arena, &row, &err)) {
        fail_msg("%s", err.text);
    }
    assert_int_equal(row.status, STATUS_SUPPRESSED);
    assert_true(str_eq(row.reason_code, STR("hard_bounce")));
    assert_int_equal(row.at_us[FOLD_ENDED], accepted_at_us);
    assert_true(str_eq(row.text[FOLD_GATE_TRACE], STR("T+S-")));
    assert_false(notification_of_events(
        events, accepted_at_us, STR("other"), STR(ALICE), arena, &row, &err));
    assert_false(notification_of_events(
        STR("\x07"), accepted_at_us, STR("acme"), STR(ALICE), arena, &row, &err));
    arena_free(arena);
}

static NotificationWait away; // of the channel

static void print(
    Buf *out, const HistoryRow *row, const NotificationAttempt *attempts, size_t count,
    const NotificationWait *wait)
{
    notification_print_open(out, row, attempts, count, wait, false);
    buf_char(out, '}');
}

static void assert_printed(const HistoryRow *row, const char *expected)
{
    Buf out;
    buf_init(&out, NOTIFICATION_JSON_MAX);
    print(&out, row, NULL, 0, &away);
    assert_string_equal(buf_c(&out), expected);
    buf_done(&out);
}

static void what_is_not_known_is_left_out(void **state)
{
    (void)state;
    HistoryRow row = {.id = STR(ALICE), .status = STATUS_QUEUED, .created_at_us = 1000000};
    row.text[FOLD_CHANNEL] = STR("email");
    row.text[FOLD_ADDRESS_HASH] = STR("never shown");
    assert_printed(
        &row, "{\"id\":\"" ALICE "\",\"status\":\"queued\",\"channel\":\"email\","
              "\"created_at\":\"1970-01-01T00:00:01.000000Z\"}");
}

static void an_attempt_shows_what_it_costs_and_who_says_so(void **state)
{
    (void)state;
    const HistoryRow row = {.id = STR(ALICE), .status = STATUS_SENT};
    const NotificationAttempt attempts[] = {
        {.number = 1,
         .vendor = STR("vonage"),
         .outcome = STR("rejected_retryable"),
         .code = STR("503"),
         .cost_micros = -1},
        {.number = 2,
         .vendor = STR("twilio"),
         .outcome = STR("accepted"),
         .finished_us = 5000000,
         .segments = 2,
         .cost_micros = 15800,
         .currency = STR("USD"),
         .estimated = true},
        {.number = 3,
         .vendor = STR("twilio"),
         .outcome = STR("accepted"),
         .cost_micros = 12000000,
         .currency = STR("EUR")},
        {.number = 4,
         .vendor = STR("twilio"),
         .outcome = STR("accepted"),
         .cost_micros = 0,
         .currency = STR("EUR")},
    };
    Buf out;
    buf_init(&out, NOTIFICATION_JSON_MAX);
    print(&out, &row, attempts, sizeof attempts / sizeof *attempts, NULL);
    assert_string_equal(
        buf_c(&out),
        "{\"id\":\"" ALICE "\",\"status\":\"sent\",\"attempts\":["
        "{\"number\":1,\"vendor\":\"vonage\",\"outcome\":\"rejected_retryable\",\"code\":\"503\"},"
        "{\"number\":2,\"vendor\":\"twilio\",\"outcome\":\"accepted\","
        "\"finished_at\":\"1970-01-01T00:00:05.000000Z\",\"segments\":2,\"cost\":\"0.0158\","
        "\"currency\":\"USD\",\"cost_estimated\":true},"
        "{\"number\":3,\"vendor\":\"twilio\",\"outcome\":\"accepted\",\"cost\":\"12\","
        "\"currency\":\"EUR\",\"cost_estimated\":false},"
        "{\"number\":4,\"vendor\":\"twilio\",\"outcome\":\"accepted\",\"cost\":\"0\","
        "\"currency\":\"EUR\",\"cost_estimated\":false}]}");
    buf_done(&out);
}

static void what_is_under_way_says_which_vendor_it_waits_for(void **state)
{
    (void)state;
    away = (NotificationWait){.vendor = "smtp", .since_us = 5000000};
    HistoryRow row = {.id = STR(ALICE), .status = STATUS_SENDING};
    assert_printed(
        &row, "{\"id\":\"" ALICE "\",\"status\":\"sending\",\"waiting\":{\"for\":\"smtp\","
              "\"since\":\"1970-01-01T00:00:05.000000Z\"}}");
    row.status = STATUS_SENT;
    assert_printed(&row, "{\"id\":\"" ALICE "\",\"status\":\"sent\"}");
    away = (NotificationWait){.since_us = 0};
    row.status = STATUS_SENDING;
    assert_printed(&row, "{\"id\":\"" ALICE "\",\"status\":\"sending\"}");
}

static void an_end_that_a_resend_has_undone_is_not_shown(void **state)
{
    (void)state;
    HistoryRow row = {.id = STR(ALICE), .status = STATUS_FAILED, .reason_code = STR("expired")};
    row.at_us[FOLD_ENDED] = 2000000;
    assert_printed(
        &row, "{\"id\":\"" ALICE "\",\"status\":\"failed\",\"reason_code\":\"expired\","
              "\"ended_at\":\"1970-01-01T00:00:02.000000Z\"}");
    row.status = STATUS_SENT;
    row.reason_code = STR_EMPTY;
    row.at_us[FOLD_SENT] = 3000000;
    assert_printed(
        &row, "{\"id\":\"" ALICE "\",\"status\":\"sent\","
              "\"sent_at\":\"1970-01-01T00:00:03.000000Z\"}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_accept_log_shows_the_status_of_the_one_that_is_asked_for),
        cmocka_unit_test(what_is_not_known_is_left_out),
        cmocka_unit_test(an_attempt_shows_what_it_costs_and_who_says_so),
        cmocka_unit_test(what_is_under_way_says_which_vendor_it_waits_for),
        cmocka_unit_test(an_end_that_a_resend_has_undone_is_not_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
