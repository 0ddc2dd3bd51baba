// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "services/dispatcher/job.h"

typedef struct Case {
    LedgerState row;
    const char *owner;
    int64_t wait_ms;
    UnknownPolicy policy;
    bool decided;
    Course expected;
} Case;

static Course judge(const Case *at)
{
    LedgerConflict conflict = {
        .row = {.state = at->row}, .owner = str_from(at->owner), .wait_ms = at->wait_ms};
    Job job = {.conflict = &conflict, .decided = at->decided};
    return job_classify(&job, STR("us"), at->policy);
}

static void the_ledgers_row_says_what_becomes_of_a_job(void **state)
{
    (void)state;
    static const Case cases[] = {
        {LEDGER_NONE, "", 0, UNKNOWN_RESEND, false, COURSE_RECHECK},
        {LEDGER_SENT, "them", 0, UNKNOWN_RESEND, false, COURSE_REPEAT},
        {LEDGER_DEFERRED, "us", 0, UNKNOWN_RESEND, false, COURSE_REPEAT},
        {LEDGER_FAILED, "", 0, UNKNOWN_PARK, true, COURSE_REPEAT},
        {LEDGER_PARKED, "them", 0, UNKNOWN_PARK, false, COURSE_REPEAT},
        // released, or ours: it was surely not sent, whatever the policy and the lease
        {LEDGER_CLAIMED, "", 0, UNKNOWN_PARK, false, COURSE_TAKE_OVER},
        {LEDGER_CLAIMED, "us", 5000, UNKNOWN_PARK, false, COURSE_TAKE_OVER},
        {LEDGER_CLAIMED, "them", 5000, UNKNOWN_PARK, false, COURSE_WAIT},
        {LEDGER_CLAIMED, "them", 5000, UNKNOWN_RESEND, true, COURSE_WAIT},
        // its holder is gone: unknown
        {LEDGER_CLAIMED, "them", 0, UNKNOWN_RESEND, false, COURSE_TAKE_OVER},
        {LEDGER_CLAIMED, "them", 0, UNKNOWN_PARK, false, COURSE_PARK},
        {LEDGER_CLAIMED, "them", 0, UNKNOWN_PARK, true, COURSE_TAKE_OVER}, // nothing is sent anyway
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(judge(&cases[i]), cases[i].expected);
    }
}

static void a_job_without_a_conflict_begins(void **state)
{
    (void)state;
    Job job = {0};
    assert_int_equal(job_classify(&job, STR("us"), UNKNOWN_PARK), COURSE_BEGIN);
}

static void a_vendors_answer_does_not_name_the_recipient(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    Delivery delivery = {.arena = arena};
    Stentor__V1__Rendered rendered = STENTOR__V1__RENDERED__INIT;
    Job job = {.delivery = &delivery, .rendered = &rendered, .mail.to = STR("user-0815")};
    const SendResult result = {
        .state = SEND_ANSWERED, .text = STR("no user-0815"), .code = STR("404")};
    rendered.channel = STENTOR__V1__CHANNEL__CHANNEL_PUSH;
    SendResult shown = job_shown(&job, &result);
    assert_true(str_eq(shown.text, STR("no ***")) && str_eq(shown.code, STR("404")));
    assert_int_equal(shown.state, SEND_ANSWERED);
    rendered.channel = STENTOR__V1__CHANNEL__CHANNEL_EMAIL; // those are masked already
    assert_true(str_eq(job_shown(&job, &result).text, result.text));
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_ledgers_row_says_what_becomes_of_a_job),
        cmocka_unit_test(a_job_without_a_conflict_begins),
        cmocka_unit_test(a_vendors_answer_does_not_name_the_recipient),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
