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
        cmocka_unit_test(what_is_not_known_is_left_out),
        cmocka_unit_test(an_attempt_shows_what_it_costs_and_who_says_so),
        cmocka_unit_test(what_is_under_way_says_which_vendor_it_waits_for),
        cmocka_unit_test(an_end_that_a_resend_has_undone_is_not_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
