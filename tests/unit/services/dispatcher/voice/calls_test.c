// SPDX-License-Identifier: Apache-2.0
#include "services/dispatcher/voice/calls.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

// 2026-11-27T00:00:00Z, which is 01:00 in Berlin.
#define MIDNIGHT_US INT64_C(1795737600000000)
#define MINUTE_US INT64_C(60000000)

typedef struct Fixture {
    Arena *arena;
    Delivery delivery;
    Stentor__V1__Rendered rendered;
    Stentor__V1__QuietHours quiet;
    LedgerKey key;
    Job job;
    JobRules rules;
    JobOpening opening;
} Fixture;

static void set_up(Fixture *f)
{
    *f = (Fixture){.arena = arena_new(0)};
    f->delivery.arena = f->arena;
    stentor__v1__rendered__init(&f->rendered);
    stentor__v1__quiet_hours__init(&f->quiet);
    f->quiet.start_minute = 22 * 60;
    f->quiet.end_minute = 7 * 60;
    f->rendered.channel = STENTOR__V1__CHANNEL__CHANNEL_VOICE;
    f->rendered.attempt = 2;
    f->rendered.rung = 1;
    f->rendered.quiet_hours = &f->quiet;
    f->rendered.quiet_zone = (char *)(uintptr_t) "Europe/Berlin";
    f->key = (LedgerKey){.notification_id = STR("ntf_1"), .attempt = 2, .tenant = STR("acme")};
    f->rules = (JobRules){.zones = zones_new()};
    f->opening = (JobOpening){.rules = &f->rules, .now_us = MIDNIGHT_US};
    f->job = (Job){
        .delivery = &f->delivery,
        .rendered = &f->rendered,
        .key = &f->key,
        .row_key = &f->key,
        .name = STR("ntf_1/2"),
        .place = {STR("twilio_voice"), STR("main"), STR_EMPTY},
        .row = {.rung = -1}};
}

static void tear_down(Fixture *f)
{
    zones_free(f->rules.zones);
    arena_free(f->arena);
}

static void a_call_waits_for_the_morning(void **state)
{
    (void)state;
    Fixture f;
    set_up(&f);
    assert_true(calls_wait_for_morning(&f.job, &f.opening));
    assert_true(f.job.decided);
    assert_int_equal(f.job.row.state, LEDGER_DEFERRED);
    assert_int_equal(f.job.row.due_at_us, MIDNIGHT_US + 6 * 60 * MINUTE_US); // 07:00 there
    assert_int_equal(f.job.row.rung, 1);                                     // it uses none
    tear_down(&f);
}

static void what_may_have_begun_is_for_a_policy(void **state)
{
    (void)state;
    Fixture f;
    set_up(&f);
    assert_true(calls_wait_for_morning(&f.job, &f.opening));
    assert_false(calls_may_have_begun(&f.job));
    f.job.taken_unknown = f.job.route.routed = true;
    assert_true(calls_may_have_begun(&f.job));
    f.job.row.state = LEDGER_FAILED; // decided otherwise: expired, erased
    assert_false(calls_may_have_begun(&f.job));
    tear_down(&f);
}

static void by_day_or_without_quiet_hours_it_begins(void **state)
{
    (void)state;
    Fixture f;
    set_up(&f);
    f.opening.now_us = MIDNIGHT_US + 6 * 60 * MINUTE_US;
    assert_false(calls_wait_for_morning(&f.job, &f.opening));
    f.opening.now_us = MIDNIGHT_US;
    f.rendered.quiet_hours = NULL;
    assert_false(calls_wait_for_morning(&f.job, &f.opening));
    assert_false(f.job.decided);
    // A zone that is none here counts as UTC.
    f.rendered.quiet_hours = &f.quiet;
    f.rendered.quiet_zone = (char *)(uintptr_t) "Moon/Base";
    assert_true(calls_wait_for_morning(&f.job, &f.opening));
    assert_int_equal(f.job.row.due_at_us, MIDNIGHT_US + 7 * 60 * MINUTE_US);
    tear_down(&f);
}

static void quiet_hours_that_are_none_are_refused(void **state)
{
    (void)state;
    Fixture f;
    Error err = {0};
    set_up(&f);
    assert_true(calls_check(&f.rendered, &err));
    f.quiet.end_minute = 1440;
    assert_false(calls_check(&f.rendered, &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
    assert_memory_equal(err.text, "'quiet_hours'", 13);
    f.rendered.quiet_hours = NULL;
    assert_true(calls_check(&f.rendered, &err));
    tear_down(&f);
}

static int64_t planned(Fixture *f)
{
    const Ladder ladder = {.rung_s = {120, 600}, .count = 2};
    f->job.row = (LedgerRow){.state = LEDGER_SENT, .rung = -1};
    calls_plan_next(&f->job, &ladder, 0, MIDNIGHT_US);
    assert_true((f->job.row.due_at_us > 0) == (f->job.row.rung >= 0));
    assert_true((f->job.row.due_at_us > 0) == calls_are_planned(&f->job));
    return f->job.row.due_at_us > 0 ? (f->job.row.due_at_us - MIDNIGHT_US) / 1000000 : 0;
}

static void the_next_call_is_planned_by_the_ladder(void **state)
{
    (void)state;
    Fixture f;
    set_up(&f);
    assert_int_equal(planned(&f), 600);
    assert_int_equal(f.job.row.rung, 2);
    f.rendered.rung = 0;
    assert_int_equal(planned(&f), 120);
    f.rendered.expires_at_us = MIDNIGHT_US + 120 * INT64_C(1000000);
    assert_int_equal(planned(&f), 0); // too late then
    f.rendered.expires_at_us++;
    assert_int_equal(planned(&f), 120);
    f.rendered.rung = 2;
    assert_int_equal(planned(&f), 0); // it is used up
    tear_down(&f);
}

static void the_next_call_names_the_one_before_and_no_doubt(void **state)
{
    (void)state;
    Fixture f;
    set_up(&f);
    Stentor__V1__Rendered next = f.rendered;
    next.unknown_vendor = (char *)(uintptr_t) "vonage_voice";
    next.unknown_at_us = 1;
    next.unknown_unclear = true;
    calls_follow(&f.job, &next);
    assert_int_equal(next.after_call, 2);
    assert_string_equal(next.unknown_vendor, "");
    assert_int_equal(next.unknown_at_us, 0);
    assert_false(next.unknown_unclear);
    tear_down(&f);
}

static void it_ends_when_the_call_before_stands_as_sent(void **state)
{
    (void)state;
    Fixture f;
    set_up(&f);
    LedgerConflict conflict = {.attempt = 1, .row = {.state = LEDGER_SENT, .due_at_us = 7}};
    f.job.conflict = &conflict;
    f.rendered.after_call = 1;
    assert_true(calls_is_answered(&f.job));
    conflict.row.state = LEDGER_DEFERRED;
    assert_false(calls_is_answered(&f.job));
    conflict.row.state = LEDGER_SENT;
    conflict.attempt = 2; // its own row: a redelivery
    assert_false(calls_is_answered(&f.job));
    conflict.attempt = 1;
    f.rendered.after_call = 0;
    assert_false(calls_is_answered(&f.job));
    f.rendered.after_call = 1;
    conflict.row.due_at_us = 0; // a proof that another mail was sent
    assert_false(calls_is_answered(&f.job));
    tear_down(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_waits_for_the_morning),
        cmocka_unit_test(what_may_have_begun_is_for_a_policy),
        cmocka_unit_test(by_day_or_without_quiet_hours_it_begins),
        cmocka_unit_test(quiet_hours_that_are_none_are_refused),
        cmocka_unit_test(the_next_call_is_planned_by_the_ladder),
        cmocka_unit_test(the_next_call_names_the_one_before_and_no_doubt),
        cmocka_unit_test(it_ends_when_the_call_before_stands_as_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
