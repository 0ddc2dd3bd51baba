// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/model/rules/gate_trace.h"
#include "tests/unit/common/model/zone_cases.h"

#define NOON "2026-05-01T12:00:00Z"
#define NIGHT "2026-05-01T23:00:00Z"

typedef struct Fixture {
    Zones *zones;
    GateTenant tenant;
    GatePerson person, owner;
    const GatePerson *owners[1];
    GatePreference preference;
    GateConsent consent;
    GateCase facts;
} Fixture;

static int set_up(void **state)
{
    static Fixture f;
    memset(&f, 0, sizeof f);
    f.zones = zones_new();
    f.owners[0] = &f.owner;
    f.person.preferences = &f.preference;
    f.person.consents = &f.consent;
    f.facts = (GateCase){
        .tenant = &f.tenant,
        .person = &f.person,
        .owners = f.owners,
        .utc = zone_named(f.zones, "UTC"),
        .category = CATEGORY_BILLING,
        .channel = CHANNEL_EMAIL,
        .priority = PRIORITY_NORMAL,
        .has_address = true,
        .now_us = instant(NOON),
    };
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    Fixture *f = *state;
    zones_free(f->zones);
    return 0;
}

static void expect(const Fixture *f, const char *expected)
{
    char trace[GATE_TRACE_SIZE];
    GateDecision decision = gate_decide(&f->facts);
    gate_trace(&f->facts, &decision, trace);
    assert_string_equal(trace, expected);
}

static void a_plain_mail_is_traced_in_a_few_characters(void **state)
{
    Fixture *f = *state;
    expect(f, "T+S+U+A+");
    f->facts.person = NULL;
    expect(f, "T+S+A+");
    f->facts.has_address = false;
    expect(f, "T+A-");
}

static void a_refusal_is_the_last_question(void **state)
{
    Fixture *f = *state;
    f->tenant.suspended = true;
    expect(f, "T-");
    f->tenant.suspended = false;
    f->tenant.categories_off = 1U << CATEGORY_SOCIAL;
    f->facts.suppression = SUPPRESSION_HARD_BOUNCE;
    f->facts.listing = GATE_LISTING_PLATFORM;
    expect(f, "T+P+S-(platform)");
    f->facts.category = CATEGORY_SOCIAL;
    expect(f, "T+P-(category)");
    f->tenant.channels_off = 1U << CHANNEL_EMAIL;
    f->tenant.categories_off = 0;
    expect(f, "T+P-(channel)");
    f->tenant.channels_off = 0;
    f->facts.expires_at_us = f->facts.now_us;
    expect(f, "T+E-");
    f->facts.expires_at_us = 0;
    f->facts.suppression = SUPPRESSION_NONE;
    f->person.unsubscribed = true;
    expect(f, "T+S+U-");
}

static void consents_and_preferences_are_named_by_category_and_channel(void **state)
{
    Fixture *f = *state;
    f->facts.category = CATEGORY_MARKETING;
    expect(f, "T+S+U+C-");
    f->person.consent_count = 1;
    f->consent = (GateConsent){CATEGORY_MARKETING, CHANNEL_NONE, true};
    expect(f, "T+S+U+C+(5/0)A+");
    f->consent.granted = false;
    expect(f, "T+S+U+C-(5/0)");
    f->consent.granted = true;
    f->person.preference_count = 1;
    f->preference = (GatePreference){.channel = CHANNEL_EMAIL, .off = true};
    expect(f, "T+S+U+C+(5/0)F-(0/1)");
    f->preference.off = false;
    expect(f, "T+S+U+C+(5/0)F+(0/1)A+");
    f->facts.owner_count = 1;
    f->owner.unsubscribed = true;
    expect(f, "T+S+U+C+(5/0)F+(0/1)U-(owner)");
    f->facts.person = NULL;
    f->facts.owner_count = 0;
    expect(f, "T+S+C-");
    f->facts.has_consent = true;
    expect(f, "T+S+C+(caller)A+");
}

static void what_is_passed_over_is_waived(void **state)
{
    Fixture *f = *state;
    f->person.unsubscribed = true;
    f->facts.category = CATEGORY_SECURITY;
    f->facts.suppression = SUPPRESSION_OPT_OUT;
    f->facts.listing = GATE_LISTING_TENANT;
    expect(f, "T+S!(tenant)U!A+");
    f->facts.suppression = SUPPRESSION_NONE;
    f->facts.category = CATEGORY_BILLING;
    f->facts.priority = PRIORITY_CRITICAL;
    expect(f, "T+S+U!A+");
    f->person.unsubscribed = false;
    f->facts.now_us = instant(NIGHT);
    f->person.has_quiet_hours = true;
    f->person.quiet_hours = (QuietHours){22 * 60, 7 * 60 + 30};
    f->tenant.limits.per_minute = 1;
    f->facts.tenant_place = (LimitPlace){5, 5};
    expect(f, "T+S+U+A+L!Q!(r2200-0730)");
}

static void why_it_waits_and_why_not_can_be_seen(void **state)
{
    Fixture *f = *state;
    f->tenant.quiet_hours = (QuietHours){22 * 60, 7 * 60};
    f->tenant.recipient_limits.per_day = 3;
    expect(f, "T+S+U+A+L+Q+(t2200-0700)");
    f->facts.now_us = instant(NIGHT);
    expect(f, "T+S+U+A+L+Q>(t2200-0700)");
    f->facts.recipient_place = (LimitPlace){5, 5};
    expect(f, "T+S+U+A+L>(recipient)Q>(t2200-0700)");
    f->tenant.over_limit = OVER_LIMIT_SUPPRESS;
    expect(f, "T+S+U+A+L-(recipient)");
    f->facts.recipient_place = (LimitPlace){0, 0};
    f->facts.expires_at_us = instant(NIGHT) + 60000000;
    expect(f, "T+E+S+U+A+L+Q>(t2200-0700)E-(later)");
    f->facts.expires_at_us = 0;
    f->person.preference_count = 1;
    f->preference.plan.frequency = FREQUENCY_DAILY;
    f->facts.scheduled_for_us = instant(NIGHT) + 1;
    expect(f, "T+S+U+F+(0/0)A+L+W>D&(daily)");
    f->facts.no_digest = true;
    expect(f, "T+S+U+F+(0/0)A+L+W>D!(daily)Q>(t2200-0700)");
}

static void a_minors_guardian_is_the_first_question(void **state)
{
    Fixture *f = *state;
    f->facts.routed = GUARDIAN_REDIRECT;
    expect(f, "G+(redirect)T+S+U+A+");
    f->facts.routed = GUARDIAN_UNSAID;
    f->person.minor = true;
    f->person.guardian_routing = GUARDIAN_REDIRECT;
    char trace[GATE_TRACE_SIZE];
    const GateDecision none = {.verdict = GATE_SUPPRESS, .reason = GATE_NO_ADDRESS};
    gate_trace(&f->facts, &none, trace);
    assert_string_equal(trace, "T+U+A-(guardian)");
}

static void an_erased_address_takes_the_place_of_what_was_behind_it(void **state)
{
    Fixture *f = *state;
    f->tenant.limits.per_day = 9;
    char trace[GATE_TRACE_SIZE];
    GateDecision decision = gate_decide(&f->facts);
    gate_trace(&f->facts, &decision, trace);
    assert_string_equal(trace, "T+S+U+A+L+");
    gate_trace_erased(trace);
    assert_string_equal(trace, "T+S+U+A-(erased)");
}

// ---- the law ----

static unsigned draw(unsigned *seed)
{
    *seed = *seed * 1103515245U + 12345U;
    return *seed >> 16;
}

static void vary(Fixture *f, unsigned *seed)
{
#define ONE_IN(n) (draw(seed) % (n) == 0)
    f->tenant = (GateTenant){.suspended = ONE_IN(16)};
    f->tenant.channels_off = ONE_IN(12) ? 1U << CHANNEL_EMAIL : 0;
    f->tenant.quiet_hours = ONE_IN(2) ? (QuietHours){22 * 60, 7 * 60} : (QuietHours){0, 0};
    f->tenant.limits.per_minute = ONE_IN(3);
    f->tenant.over_limit = ONE_IN(3) ? OVER_LIMIT_SUPPRESS : OVER_LIMIT_DEFER;
    f->person.unsubscribed = ONE_IN(8);
    f->person.minor = ONE_IN(12);
    f->person.guardian_routing = GUARDIAN_REDIRECT;
    f->person.consent_count = ONE_IN(2);
    f->consent = (GateConsent){CATEGORY_NONE, CHANNEL_NONE, !ONE_IN(4)};
    f->person.preference_count = ONE_IN(2);
    f->preference = (GatePreference){.off = ONE_IN(5)};
    f->preference.plan.frequency = (Frequency)(draw(seed) % FREQUENCY_COUNT);
    f->owner.unsubscribed = ONE_IN(3);
    f->facts.owner_count = ONE_IN(4);
    f->facts.person = ONE_IN(5) ? NULL : &f->person;
    f->facts.category = (Category)(1 + draw(seed) % (CATEGORY_COUNT - 1));
    f->facts.priority = (Priority)(1 + draw(seed) % (PRIORITY_COUNT - 1));
    f->facts.now_us = instant(ONE_IN(2) ? NOON : NIGHT);
    f->facts.scheduled_for_us = ONE_IN(4) ? instant(NIGHT) + 5 : 0;
    f->facts.expires_at_us = ONE_IN(4) ? instant(NIGHT) + 60000000 : 0;
    f->facts.has_address = !ONE_IN(8);
    f->facts.suppression =
        ONE_IN(6) ? (SuppressionReason)(draw(seed) % SUPPRESSION_COUNT) : SUPPRESSION_NONE;
    f->facts.suppression = f->facts.has_address ? f->facts.suppression : SUPPRESSION_NONE;
    f->facts.no_digest = ONE_IN(4);
    f->facts.tenant_place = ONE_IN(2) ? (LimitPlace){9, 9} : (LimitPlace){1, 1};
#undef ONE_IN
}

// Which steps refuse, defer or gather; at most one refuses, and it is the last.
static void assert_agrees(const GateDecision *decision, const char *trace)
{
    GateTraceStep steps[GATE_TRACE_STEPS_MAX];
    size_t count = gate_trace_read(str_from(trace), steps);
    assert_in_range(count, 1, GATE_TRACE_STEPS_MAX);
    bool defers = false;
    bool gathers = false;
    for (size_t i = 0; i < count; i++) {
        if (steps[i].outcome == GATE_REFUSED && i + 1 < count) {
            fail_msg("%s: a refusal in the middle", trace);
        }
        defers = defers || steps[i].outcome == GATE_DEFERRED;
        gathers = gathers || steps[i].outcome == GATE_GATHERED;
    }
    bool refuses = steps[count - 1].outcome == GATE_REFUSED;
    if (refuses != (decision->verdict == GATE_SUPPRESS) ||
        gathers != (decision->verdict == GATE_GATHER) ||
        (decision->verdict == GATE_DEFER && !defers) || (decision->verdict == GATE_GO && defers)) {
        fail_msg("%s: verdict %d, reason %d", trace, decision->verdict, decision->reason);
    }
    bool quiet =
        steps[count - 1].step == GATE_STEP_QUIET_HOURS && steps[count - 1].outcome == GATE_DEFERRED;
    assert_int_equal(
        quiet, decision->verdict == GATE_DEFER && decision->reason == GATE_QUIET_HOURS);
}

static void the_last_question_is_the_reason_of_the_decision(void **state)
{
    Fixture *f = *state;
    unsigned seed = 7;
    int verdicts[4] = {0};
    for (int i = 0; i < 20000; i++) {
        char trace[GATE_TRACE_SIZE];
        vary(f, &seed);
        GateDecision decision = gate_decide(&f->facts);
        gate_trace(&f->facts, &decision, trace);
        assert_agrees(&decision, trace);
        assert_in_range(strlen(trace), 2, 80);
        verdicts[decision.verdict]++;
    }
    for (int i = 0; i < 4; i++) {
        assert_in_range(verdicts[i], 100, 20000);
    }
}

static void what_a_reader_does_not_know_is_passed_over(void **state)
{
    (void)state;
    GateTraceStep steps[GATE_TRACE_STEPS_MAX];
    assert_int_equal(gate_trace_read(STR_EMPTY, steps), 0);
    assert_int_equal(gate_trace_read(STR("no trace at all"), steps), 0);
    assert_int_equal(gate_trace_read(STR("T"), steps), 0);
    assert_int_equal(gate_trace_read(STR("X+(future)T+Z?S-(tenant"), steps), 2);
    assert_int_equal(steps[1].step, GATE_STEP_SUPPRESSION);
    assert_true(str_eq(steps[1].rule, STR("tenant")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_plain_mail_is_traced_in_a_few_characters, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_refusal_is_the_last_question, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            consents_and_preferences_are_named_by_category_and_channel, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_passed_over_is_waived, set_up, tear_down),
        cmocka_unit_test_setup_teardown(why_it_waits_and_why_not_can_be_seen, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_minors_guardian_is_the_first_question, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            an_erased_address_takes_the_place_of_what_was_behind_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            the_last_question_is_the_reason_of_the_decision, set_up, tear_down),
        cmocka_unit_test(what_a_reader_does_not_know_is_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
