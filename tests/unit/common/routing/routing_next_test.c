// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/routing/routing_next.h"

typedef struct Row {
    const char *name;
    Channel channel;
    Category category;
    RoutingFacts facts;
    NextAction action;
    int64_t wait_ms;
} Row;

#define ANSWERED(class) .state = SEND_ANSWERED, .reply = (class)
#define OTHER .other_usable = true
#define UP .vendor_up = true
#define MAIL CHANNEL_EMAIL, CATEGORY_TRANSACTIONAL

static void check_rows(const Row *rows, size_t count, const RoutingRules *rules)
{
    for (size_t i = 0; i < count; i++) {
        RoutingRules own =
            routing_rules(rows[i].channel, rows[i].category, 0, ROUTING_UNKNOWN_UNSAID, 0);
        RoutingNext next = routing_next(rules != NULL ? rules : &own, &rows[i].facts);
        if (next.action != rows[i].action || next.wait_ms != rows[i].wait_ms) {
            fail_msg(
                "%s: %s in %lld ms (%s)", rows[i].name, next_action_name(next.action),
                (long long)next.wait_ms, next.why);
        }
        assert_true(next.why[0] != '\0');
    }
}
#define CHECK(rows, rules) check_rows(rows, sizeof(rows) / sizeof(rows)[0], rules)

// clang-format off
static void answers_lead_where_the_table_says(void **state)
{
    (void)state;
    static const Row rows[] = {
        {"accepted",               MAIL, {ANSWERED(REPLY_ACCEPTED), OTHER},    NEXT_END, 0},
        {"terminal, never v2",     MAIL, {ANSWERED(REPLY_TERMINAL), OTHER},    NEXT_END, 0},
        {"bad address, never v2",  MAIL, {ANSWERED(REPLY_BAD_ADDRESS), OTHER}, NEXT_END, 0},
        {"retry is no default",    MAIL, {ANSWERED(REPLY_RETRY), OTHER, UP},   NEXT_LADDER, 0},
        {"config",                 MAIL, {ANSWERED(REPLY_CONFIG), OTHER},      NEXT_FALLBACK, 0},
        {"config, no other",       MAIL, {ANSWERED(REPLY_CONFIG)},             NEXT_WAIT, 0},
        {"elsewhere",              MAIL, {ANSWERED(REPLY_ELSEWHERE), OTHER},   NEXT_FALLBACK, 0},
        {"elsewhere, no other",    MAIL, {ANSWERED(REPLY_ELSEWHERE)},          NEXT_END, 0},
        {"unsent",                 MAIL, {.state = SEND_UNSENT, OTHER},        NEXT_SAME_CLAIM, 0},
        {"unsent, no other",       MAIL, {.state = SEND_UNSENT},               NEXT_LADDER, 0},
        {"released",               MAIL, {.state = SEND_RELEASED, OTHER},      NEXT_WAIT, 0},
    };
    CHECK(rows, NULL);
}

static void a_route_may_fall_back_on_what_is_tried_again_and_on_nothing(void **state)
{
    (void)state;
    RoutingRules retry = routing_rules(MAIL, FALLBACK_RETRY, ROUTING_UNKNOWN_UNSAID, 0);
    static const Row with_retry[] = {
        {"retry",            MAIL, {ANSWERED(REPLY_RETRY), OTHER},     NEXT_FALLBACK, 0},
        {"retry, no other",  MAIL, {ANSWERED(REPLY_RETRY)},            NEXT_LADDER, 0},
        {"unsent not named", MAIL, {.state = SEND_UNSENT, OTHER},      NEXT_LADDER, 0},
        {"config not named", MAIL, {ANSWERED(REPLY_CONFIG), OTHER},    NEXT_WAIT, 0},
        {"else not named",   MAIL, {ANSWERED(REPLY_ELSEWHERE), OTHER}, NEXT_END, 0},
    };
    CHECK(with_retry, &retry);
}

static void a_throttled_mail_waits_as_long_as_its_lane_is_patient(void **state)
{
    (void)state;
    static const Row rows[] = {
        {"critical, 2 s",      MAIL, {ANSWERED(REPLY_THROTTLED), OTHER, .priority = PRIORITY_CRITICAL, .retry_after_ms = 2000},  NEXT_WAIT, 2000},
        {"critical, more",     MAIL, {ANSWERED(REPLY_THROTTLED), OTHER, .priority = PRIORITY_CRITICAL, .retry_after_ms = 2001},  NEXT_FALLBACK, 0},
        {"critical, no other", MAIL, {ANSWERED(REPLY_THROTTLED), .priority = PRIORITY_CRITICAL, .retry_after_ms = 9000},         NEXT_WAIT, 9000},
        {"high, 30 s",         MAIL, {ANSWERED(REPLY_THROTTLED), OTHER, .priority = PRIORITY_HIGH, .retry_after_ms = 30000},     NEXT_WAIT, 30000},
        {"high, more",         MAIL, {ANSWERED(REPLY_THROTTLED), OTHER, .priority = PRIORITY_HIGH, .retry_after_ms = 30001},     NEXT_FALLBACK, 0},
        {"normal, an hour",    MAIL, {ANSWERED(REPLY_THROTTLED), OTHER, .priority = PRIORITY_NORMAL, .retry_after_ms = 3600000}, NEXT_WAIT, 3600000},
        {"low, an hour",       MAIL, {ANSWERED(REPLY_THROTTLED), OTHER, .priority = PRIORITY_LOW, .retry_after_ms = 3600000},    NEXT_WAIT, 3600000},
    };
    CHECK(rows, NULL);
}

static void a_key_that_the_vendor_still_knows_is_used_again_there_and_nowhere_else(void **state)
{
    (void)state;
    static const Row rows[] = {
        {"inside",          MAIL, {.state = SEND_UNKNOWN, OTHER, UP, .key_known_s = 86400, .key_age_ms = 69119999}, NEXT_SAME_KEY, 0},
        {"inside, down",    MAIL, {.state = SEND_UNKNOWN, OTHER, .key_known_s = 86400, .key_age_ms = 1000},         NEXT_WAIT, 0},
        {"over 80 percent", MAIL, {.state = SEND_UNKNOWN, OTHER, UP, .key_known_s = 86400, .key_age_ms = 69120000}, NEXT_PARK, 0},
    };
    CHECK(rows, NULL);
}

static void a_vendor_that_can_be_asked_is_asked_twice(void **state)
{
    (void)state;
    static const Row rows[] = {
        {"first",               MAIL, {.state = SEND_UNKNOWN, OTHER, UP, .can_be_asked = true, .calls_back = true},                                NEXT_ASK, 10000},
        {"again",               MAIL, {.state = SEND_UNKNOWN, OTHER, UP, .can_be_asked = true, .asked = 1, .asked_not_found = true},               NEXT_ASK, 50000},
        {"never had it",        MAIL, {.state = SEND_UNKNOWN, OTHER, UP, .can_be_asked = true, .asked = 2, .asked_not_found = true},               NEXT_SAME_CLAIM, 0},
        {"never, no other",     MAIL, {.state = SEND_UNKNOWN, UP, .can_be_asked = true, .asked = 2, .asked_not_found = true},                      NEXT_LADDER, 0},
        {"did not say clearly", MAIL, {.state = SEND_UNKNOWN, OTHER, UP, .can_be_asked = true, .asked = 2, .calls_back = true},                    NEXT_SETTLE, 120000},
        {"nor called back",     MAIL, {.state = SEND_UNKNOWN, OTHER, UP, .can_be_asked = true, .asked = 2, .calls_back = true, .settled = true},   NEXT_PARK, 0},
    };
    CHECK(rows, NULL);
}

static void an_unknown_outcome_waits_for_a_callback_and_then_the_policy_decides(void **state)
{
    (void)state;
    #define SETTLE .state = SEND_UNKNOWN, OTHER, UP, .calls_back = true
    #define AFTER SETTLE, .settled = true
    static const Row rows[] = {
        {"e-mail settles",         CHANNEL_EMAIL, CATEGORY_TRANSACTIONAL,  {SETTLE}, NEXT_SETTLE, 120000},
        {"without callbacks",      CHANNEL_EMAIL, CATEGORY_TRANSACTIONAL,  {.state = SEND_UNKNOWN, OTHER, UP}, NEXT_PARK, 0},
        {"sms settles",            CHANNEL_SMS, CATEGORY_TRANSACTIONAL,    {SETTLE}, NEXT_SETTLE, 30000},
        {"security settles",       CHANNEL_EMAIL, CATEGORY_SECURITY,       {SETTLE}, NEXT_SETTLE, 10000},
        {"push does not",          CHANNEL_PUSH, CATEGORY_TRANSACTIONAL,   {SETTLE}, NEXT_RESEND, 0},
        {"in-app does not",        CHANNEL_INAPP, CATEGORY_MARKETING,      {SETTLE}, NEXT_RESEND, 0},
        {"webhook does not",       CHANNEL_WEBHOOK, CATEGORY_SECURITY,     {SETTLE}, NEXT_RESEND, 0},
        {"chat: an alert",         CHANNEL_WEBHOOK, CATEGORY_OPERATIONAL,  {SETTLE}, NEXT_RESEND, 0},
        {"chat: a reminder",       CHANNEL_WEBHOOK, CATEGORY_REMINDER,     {SETTLE}, NEXT_PARK,   0},
        {"chat: marketing",        CHANNEL_WEBHOOK, CATEGORY_MARKETING,    {SETTLE}, NEXT_PARK,   0},
        {"e-mail is parked",       CHANNEL_EMAIL, CATEGORY_TRANSACTIONAL,  {AFTER}, NEXT_PARK, 0},
        {"billing is parked",      CHANNEL_EMAIL, CATEGORY_BILLING,        {AFTER}, NEXT_PARK, 0},
        {"sms fails over",         CHANNEL_SMS, CATEGORY_BILLING,          {AFTER}, NEXT_FAILOVER, 0},
        {"voice fails over",       CHANNEL_VOICE, CATEGORY_TRANSACTIONAL,  {AFTER}, NEXT_FAILOVER, 0},
        {"sms, no other",          CHANNEL_SMS, CATEGORY_TRANSACTIONAL,    {.state = SEND_UNKNOWN, UP, .settled = true}, NEXT_PARK, 0},
        {"marketing counts",       CHANNEL_EMAIL, CATEGORY_MARKETING,      {AFTER}, NEXT_SENT, 0},
        {"social counts",          CHANNEL_SMS, CATEGORY_SOCIAL,           {AFTER}, NEXT_SENT, 0},
        {"a code, v1 is up",       CHANNEL_EMAIL, CATEGORY_SECURITY,       {AFTER}, NEXT_RESEND, 0},
        {"a code, v1 is down",     CHANNEL_EMAIL, CATEGORY_SECURITY,       {.state = SEND_UNKNOWN, OTHER, .settled = true}, NEXT_FAILOVER, 0},
        {"a code, nothing is up",  CHANNEL_EMAIL, CATEGORY_SECURITY,       {.state = SEND_UNKNOWN, .settled = true}, NEXT_WAIT, 0},
        {"push, v1 is down",       CHANNEL_PUSH, CATEGORY_TRANSACTIONAL,   {.state = SEND_UNKNOWN, OTHER}, NEXT_WAIT, 0},
    };
    CHECK(rows, NULL);
}

static void a_route_s_own_policy_and_time_win(void **state)
{
    (void)state;
    RoutingRules failover = routing_rules(MAIL, 0, ROUTING_FAILOVER, 5000);
    static const Row rows[] = {
        {"its own time",   MAIL, {SETTLE}, NEXT_SETTLE, 5000},
        {"its own policy", MAIL, {AFTER},  NEXT_FAILOVER, 0},
        {"it is down",     MAIL, {.state = SEND_UNKNOWN, UP, .settled = true, .other_shut = true}, NEXT_WAIT, 0},
        {"it is not there", MAIL, {.state = SEND_UNKNOWN, UP, .settled = true}, NEXT_PARK, 0},
    };
    CHECK(rows, &failover);
    RoutingRules resend = routing_rules(CHANNEL_SMS, CATEGORY_MARKETING, 0, ROUTING_RESEND, 0);
    static const Row again[] = {{"resend", MAIL, {AFTER}, NEXT_RESEND, 0}};
    CHECK(again, &resend);
    RoutingRules counted = routing_rules(MAIL, 0, ROUTING_COUNT_AS_SENT, 0);
    static const Row sent[] = {{"count as sent", MAIL, {AFTER}, NEXT_SENT, 0}};
    CHECK(sent, &counted);
}

static void what_has_expired_is_sent_no_more(void **state)
{
    (void)state;
    #define OVER .expired = true
    static const Row rows[] = {
        {"unsent",      MAIL, {.state = SEND_UNSENT, OTHER, OVER},             NEXT_EXPIRE, 0},
        {"ladder",      MAIL, {ANSWERED(REPLY_RETRY), OVER},                   NEXT_EXPIRE, 0},
        {"fallback",    MAIL, {ANSWERED(REPLY_CONFIG), OTHER, OVER},           NEXT_EXPIRE, 0},
        {"throttled",   MAIL, {ANSWERED(REPLY_THROTTLED), OVER},               NEXT_EXPIRE, 0},
        {"same key",    MAIL, {.state = SEND_UNKNOWN, UP, OVER, .key_known_s = 86400}, NEXT_EXPIRE, 0},
        {"accepted",    MAIL, {ANSWERED(REPLY_ACCEPTED), OVER},                NEXT_END, 0},
        {"still settles", MAIL, {SETTLE, OVER},                                NEXT_SETTLE, 120000},
        {"still parked",  MAIL, {AFTER, OVER},                                 NEXT_PARK, 0},
        {"code",        CHANNEL_EMAIL, CATEGORY_SECURITY, {AFTER, OVER},       NEXT_EXPIRE, 0},
    };
    CHECK(rows, NULL);
}
// clang-format on

// Whatever the facts: without a policy that says so nothing of unknown outcome goes to another
// vendor or again to this one without a key.
static void no_unknown_outcome_is_sent_twice_without_a_policy(void **state)
{
    (void)state;
    static const RoutingUnknown quiet[] = {ROUTING_PARK, ROUTING_COUNT_AS_SENT};
    for (unsigned bits = 0; bits < 1024; bits++) {
        RoutingFacts facts = {
            .state = SEND_UNKNOWN,
            .other_usable = bits & 1,
            .vendor_up = bits & 2,
            .key_known_s = bits & 4 ? 100 : 0,
            .key_age_ms = bits & 8 ? 90000 : 10,
            .can_be_asked = bits & 16,
            .asked = bits & 32 ? 2 : 0,
            .asked_not_found = bits & 64,
            .calls_back = bits & 128,
            .settled = bits & 256,
            .expired = bits & 512};
        bool absent = facts.can_be_asked && facts.asked == 2 && facts.asked_not_found;
        for (size_t i = 0; i < 2; i++) {
            RoutingRules rules = routing_rules(MAIL, 63, quiet[i], 0);
            NextAction action = routing_next(&rules, &facts).action;
            assert_true(action != NEXT_RESEND && action != NEXT_FAILOVER);
            assert_true(action != NEXT_FALLBACK);
            assert_true(absent || (action != NEXT_SAME_CLAIM && action != NEXT_LADDER));
        }
    }
}

static void names_are_read_and_others_are_not(void **state)
{
    (void)state;
    RoutingUnknown policy = ROUTING_PARK;
    assert_int_equal(fallback_from_name(STR("degraded")), FALLBACK_DEGRADED);
    assert_int_equal(fallback_from_name(STR("Unsent")), 0);
    assert_true(routing_unknown_from_name(STR("count_as_sent"), &policy));
    assert_int_equal(policy, ROUTING_COUNT_AS_SENT);
    assert_string_equal(routing_unknown_name(policy), "count_as_sent");
    assert_true(routing_unknown_from_name(STR(""), &policy));
    assert_int_equal(policy, ROUTING_UNKNOWN_UNSAID);
    assert_false(routing_unknown_from_name(STR("twice"), &policy));
}

static void each_action_has_a_name_of_its_own(void **state)
{
    (void)state;
    for (int a = 0; a < NEXT_COUNT; a++) {
        assert_true(next_action_name((NextAction)a)[0] != '\0');
        for (int b = 0; b < a; b++) {
            assert_string_not_equal(
                next_action_name((NextAction)a), next_action_name((NextAction)b));
        }
    }
}

static void a_turn_that_never_comes_is_waited_for_longer_with_each_attempt(void **state)
{
    (void)state;
    int64_t all_ms = 0;
    assert_int_equal(routing_turn_wait_ms(5000, 1), 5000);
    assert_int_equal(routing_turn_wait_ms(5000, 21), 10000);
    assert_int_equal(routing_turn_wait_ms(60000, 1000), ROUTING_TURN_WAIT_MAX_MS);
    assert_int_equal(routing_turn_wait_ms(1200000, 1000), 1200000);
    for (int32_t attempt = 1; attempt <= 1000; attempt++) {
        all_ms += routing_turn_wait_ms(5000, attempt);
    }
    assert_true(all_ms > INT64_C(86400000)); // a used-up day's quota fails no mail
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_lead_where_the_table_says),
        cmocka_unit_test(a_route_may_fall_back_on_what_is_tried_again_and_on_nothing),
        cmocka_unit_test(a_throttled_mail_waits_as_long_as_its_lane_is_patient),
        cmocka_unit_test(a_key_that_the_vendor_still_knows_is_used_again_there_and_nowhere_else),
        cmocka_unit_test(a_vendor_that_can_be_asked_is_asked_twice),
        cmocka_unit_test(an_unknown_outcome_waits_for_a_callback_and_then_the_policy_decides),
        cmocka_unit_test(a_route_s_own_policy_and_time_win),
        cmocka_unit_test(what_has_expired_is_sent_no_more),
        cmocka_unit_test(no_unknown_outcome_is_sent_twice_without_a_policy),
        cmocka_unit_test(a_turn_that_never_comes_is_waited_for_longer_with_each_attempt),
        cmocka_unit_test(names_are_read_and_others_are_not),
        cmocka_unit_test(each_action_has_a_name_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
