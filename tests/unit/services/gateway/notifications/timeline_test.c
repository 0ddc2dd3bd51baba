// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "services/gateway/notifications/timeline.h"

#define ALICE "ntf_01M83AVY1NCDCG3Y6T3Y82BH3P"
#define SECOND INT64_C(1000000)

// "queued@1 rendered@2 sending@3#1 ..."
static void assert_steps(
    const HistoryRow *row, const NotificationAttempt *attempts, size_t count, const char *expected)
{
    TimelineStep steps[TIMELINE_STEPS_MAX];
    size_t made = timeline_make(row, attempts, count, steps);
    Buf out;
    buf_init(&out, 4096);
    for (size_t i = 0; i < made; i++) {
        buf_printf(
            &out, "%s" STR_FMT "@%lld", i == 0 ? "" : " ", STR_ARG(steps[i].status),
            (long long)(steps[i].at_us / SECOND));
        if (steps[i].attempt != NULL) {
            buf_printf(&out, "#%lld", (long long)steps[i].attempt->number);
        }
        if (steps[i].reason_code.len > 0) {
            buf_printf(&out, ":" STR_FMT, STR_ARG(steps[i].reason_code));
        }
    }
    assert_string_equal(buf_c(&out), expected);
    buf_done(&out);
}

static NotificationAttempt attempt(int64_t number, const char *outcome, int64_t at_s)
{
    return (NotificationAttempt){
        .number = number,
        .vendor = STR("smtp"),
        .outcome = str_from(outcome),
        .code = STR("451"),
        .reply = STR("try later"),
        .finished_us = at_s * SECOND};
}

static void every_status_has_its_time_and_its_attempt(void **state)
{
    (void)state;
    HistoryRow row = {.id = STR(ALICE), .status = STATUS_CLICKED};
    row.at_us[FOLD_QUEUED] = 1 * SECOND;
    row.at_us[FOLD_SCHEDULED] = 1 * SECOND;
    row.at_us[FOLD_RENDERED] = 2 * SECOND;
    row.at_us[FOLD_SENT] = 9 * SECOND;
    row.at_us[FOLD_DELIVERED] = 10 * SECOND;
    row.at_us[FOLD_CLICKED] = 11 * SECOND;
    row.at_us[FOLD_OPENED] = 12 * SECOND;
    const NotificationAttempt attempts[] = {
        attempt(1, "rejected_retryable", 3), attempt(2, "timeout", 5), attempt(3, "accepted", 9)};
    assert_steps(
        &row, attempts, 3,
        "queued@1 scheduled@1 rendered@2 sending@3#1 sending@5#2 sent@9#3 delivered@10 clicked@11 "
        "opened@12");
}

static void the_reason_is_that_of_the_status_it_has(void **state)
{
    (void)state;
    HistoryRow row = {
        .id = STR(ALICE), .status = STATUS_FAILED, .reason_code = STR("invalid_address")};
    row.at_us[FOLD_QUEUED] = 1 * SECOND;
    row.at_us[FOLD_ENDED] = 4 * SECOND;
    const NotificationAttempt refused = attempt(1, "rejected_terminal", 4);
    assert_steps(&row, &refused, 1, "queued@1 failed@4#1:invalid_address");
    assert_steps(&row, NULL, 0, "queued@1 failed@4:invalid_address");
    row.status = STATUS_SUPPRESSED;
    row.reason_code = STR("opt_out");
    assert_steps(&row, NULL, 0, "queued@1 suppressed@4:opt_out");
}

static void a_mail_that_was_sent_again_shows_its_failure_too(void **state)
{
    (void)state;
    HistoryRow row = {.id = STR(ALICE), .status = STATUS_SENT};
    row.at_us[FOLD_ENDED] = 3 * SECOND;
    row.at_us[FOLD_SENT] = 8 * SECOND;
    const NotificationAttempt attempts[] = {
        attempt(1, "rejected_terminal", 3), attempt(2, "accepted", 8)};
    assert_steps(&row, attempts, 2, "failed@3#1 sent@8#2");
    assert_steps(&row, NULL, 0, "failed@3 sent@8");
    row.status = STATUS_BOUNCED; // that time is the failure's
    assert_steps(&row, NULL, 0, "failed@3 sent@8");
    row.at_us[FOLD_ENDED] = 9 * SECOND;
    assert_steps(&row, NULL, 0, "sent@8 bounced@9");
}

static void as_many_attempts_as_are_shown_fit(void **state)
{
    (void)state;
    NotificationAttempt attempts[NOTIFICATION_ATTEMPTS_MAX];
    HistoryRow row = {.id = STR(ALICE), .status = STATUS_SENDING, .reason_code = STR("throttled")};
    for (int t = 0; t < FOLD_TIME_COUNT; t++) {
        row.at_us[t] = 100 * SECOND;
    }
    for (int i = 0; i < NOTIFICATION_ATTEMPTS_MAX; i++) {
        attempts[i] = attempt(i + 1, "rejected_retryable", 7);
    }
    TimelineStep steps[TIMELINE_STEPS_MAX];
    size_t made = timeline_make(&row, attempts, NOTIFICATION_ATTEMPTS_MAX, steps);
    assert_in_range(made, NOTIFICATION_ATTEMPTS_MAX, TIMELINE_STEPS_MAX);
    for (size_t i = 0; i < NOTIFICATION_ATTEMPTS_MAX; i++) {
        assert_int_equal(steps[i].attempt->number, i + 1);
    }
    assert_true(str_eq(steps[NOTIFICATION_ATTEMPTS_MAX - 1].reason_code, STR("throttled")));
}

static void it_is_printed_with_the_vendors_words_and_what_is_left_out(void **state)
{
    (void)state;
    HistoryRow row = {.id = STR(ALICE), .status = STATUS_SCHEDULED, .reason_code = STR("digest")};
    row.at_us[FOLD_SCHEDULED] = 1 * SECOND;
    row.at_us[FOLD_SCHEDULED_FOR] = 9 * SECOND;
    const NotificationAttempt refused = attempt(61, "rejected_retryable", 2);
    Buf out;
    buf_init(&out, NOTIFICATION_JSON_MAX);
    timeline_print(&out, &row, &refused, 1, 60);
    assert_string_equal(
        buf_c(&out),
        ",\"timeline\":[{\"status\":\"scheduled\",\"at\":\"1970-01-01T00:00:01.000000Z\","
        "\"until\":\"1970-01-01T00:00:09.000000Z\",\"reason_code\":\"digest\"},"
        "{\"status\":\"sending\",\"at\":\"1970-01-01T00:00:02.000000Z\",\"reason\":\"try later\","
        "\"attempt\":61,\"vendor\":\"smtp\",\"outcome\":\"rejected_retryable\",\"code\":\"451\"}],"
        "\"attempts_left_out\":60");
    buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_its_time_and_its_attempt),
        cmocka_unit_test(the_reason_is_that_of_the_status_it_has),
        cmocka_unit_test(a_mail_that_was_sent_again_shows_its_failure_too),
        cmocka_unit_test(as_many_attempts_as_are_shown_fit),
        cmocka_unit_test(it_is_printed_with_the_vendors_words_and_what_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
