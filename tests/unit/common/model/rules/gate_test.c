// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/model/rules/gate.h"
#include "common/model/suppressions.h"
#include "tests/unit/common/model/zone_cases.h"

#define NOON "2026-05-01T12:00:00Z"
#define NIGHT "2026-05-01T23:00:00Z"

typedef struct Fixture {
    Zones *zones;
    GateTenant tenant;
    GatePerson person;
    GatePreference preferences[4];
    GateConsent consents[4];
    GateCase facts;
} Fixture;

// A plain case that goes out at once; each test changes what it is about.
static int set_up(void **state)
{
    static Fixture f;
    memset(&f, 0, sizeof f);
    f.zones = zones_new();
    f.person.preferences = f.preferences;
    f.person.consents = f.consents;
    f.facts = (GateCase){
        .tenant = &f.tenant,
        .person = &f.person,
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

static void prefer(Fixture *f, GatePreference preference)
{
    f->preferences[f->person.preference_count++] = preference;
}

static void consent(Fixture *f, Category category, Channel channel, bool granted)
{
    f->consents[f->person.consent_count++] = (GateConsent){category, channel, granted};
}

static void expect(const Fixture *f, GateVerdict verdict, GateReason reason, const char *until)
{
    GateDecision d = gate_decide(&f->facts);
    int64_t until_us = until == NULL ? 0 : instant(until);
    if (d.verdict != verdict || d.reason != reason || d.until_us != until_us) {
        char text[CLOCK_RFC3339_SIZE];
        clock_format(d.until_us, text);
        fail_msg("verdict %d, reason %d, until %s", d.verdict, d.reason, text);
    }
}

static void expect_refusal(const Fixture *f, GateReason reason)
{
    assert_int_equal(gate_refuse(&f->facts), reason);
    expect(f, GATE_SUPPRESS, reason, NULL);
}

// ---- all pairs ----

// A recipient's choices, as rows of the tables; each with whether it refuses a category or
// marketing.
typedef enum Choice {
    CHOICE_NOTHING,
    CHOICE_UNSUBSCRIBED,
    CHOICE_CATEGORY_OFF,
    CHOICE_CHANNEL_OFF,
    CHOICE_ALL_OFF_BUT_THIS,
    CHOICE_CONSENT_MARKETING,
    CHOICE_CONSENT_ANY,
    CHOICE_CONSENT_WITHDRAWN,
    CHOICE_DAILY,
    CHOICE_COUNT
} Choice;

static void say(Fixture *f, Choice choice, Category category, Channel channel)
{
    f->person.preference_count = 0;
    f->person.consent_count = 0;
    f->person.unsubscribed = choice == CHOICE_UNSUBSCRIBED;
    switch (choice) {
    case CHOICE_CATEGORY_OFF:
        prefer(f, (GatePreference){.category = category, .off = true});
        break;
    case CHOICE_CHANNEL_OFF:
        prefer(f, (GatePreference){.channel = channel, .off = true});
        break;
    case CHOICE_ALL_OFF_BUT_THIS:
        prefer(f, (GatePreference){.off = true});
        prefer(f, (GatePreference){.category = category, .channel = channel});
        consent(f, CATEGORY_NONE, CHANNEL_NONE, true);
        break;
    case CHOICE_CONSENT_MARKETING:
        consent(f, CATEGORY_MARKETING, CHANNEL_NONE, true);
        break;
    case CHOICE_CONSENT_ANY:
        consent(f, CATEGORY_NONE, channel, true);
        break;
    case CHOICE_CONSENT_WITHDRAWN:
        consent(f, CATEGORY_NONE, CHANNEL_NONE, true);
        consent(f, category, channel, false);
        break;
    case CHOICE_DAILY:
        consent(f, CATEGORY_NONE, CHANNEL_NONE, true);
        prefer(f, (GatePreference){.plan = {FREQUENCY_DAILY, 480, 0}});
        break;
    case CHOICE_NOTHING:
    case CHOICE_UNSUBSCRIBED:
    case CHOICE_COUNT:
        break;
    }
}

// The rule once more, stated differently: which choice refuses what.
static GateReason wanted_refusal(Choice choice, Category category, Priority priority)
{
    bool essential = category == CATEGORY_TRANSACTIONAL || category == CATEGORY_SECURITY ||
                     category == CATEGORY_COMPLIANCE;
    bool marketing = category == CATEGORY_MARKETING;
    if (essential) {
        return GATE_NO_REASON;
    }
    switch (choice) {
    case CHOICE_UNSUBSCRIBED:
        if (priority != PRIORITY_CRITICAL) {
            return GATE_UNSUBSCRIBED;
        }
        return marketing ? GATE_NO_CONSENT : GATE_NO_REASON;
    case CHOICE_CATEGORY_OFF:
    case CHOICE_CHANNEL_OFF:
        return marketing ? GATE_NO_CONSENT : GATE_PREFERENCE;
    case CHOICE_CONSENT_WITHDRAWN:
        return GATE_NO_CONSENT;
    case CHOICE_NOTHING:
        return marketing ? GATE_NO_CONSENT : GATE_NO_REASON;
    case CHOICE_ALL_OFF_BUT_THIS:
    case CHOICE_CONSENT_MARKETING:
    case CHOICE_CONSENT_ANY:
    case CHOICE_DAILY:
    case CHOICE_COUNT:
        break;
    }
    return GATE_NO_REASON;
}

static void check_pair(Fixture *f, Choice choice, const char *now, bool is_night)
{
    GateCase *c = &f->facts;
    c->now_us = instant(now);
    GateReason refusal = wanted_refusal(choice, c->category, c->priority);
    if (refusal != GATE_NO_REASON) {
        expect_refusal(f, refusal);
        return;
    }
    bool essential = category_ignores_opt_out(c->category);
    bool urgent = c->priority == PRIORITY_CRITICAL || c->category == CATEGORY_SECURITY;
    if (choice == CHOICE_DAILY && !urgent && !essential) {
        expect(f, GATE_GATHER, GATE_DIGEST, "2026-05-02T08:00:00Z");
    } else if (is_night && !urgent) {
        expect(f, GATE_DEFER, GATE_QUIET_HOURS, "2026-05-02T07:00:00Z");
    } else {
        expect(f, GATE_GO, GATE_NO_REASON, NULL);
    }
}

static void all_pairs_of_category_channel_priority_and_wish(void **state)
{
    Fixture *f = *state;
    f->tenant.quiet_hours = (QuietHours){1320, 420};
    int checked = 0;
    for (int category = 1; category < CATEGORY_COUNT; category++) {
        for (int channel = 1; channel < CHANNEL_COUNT; channel++) {
            for (int priority = 1; priority < PRIORITY_COUNT; priority++) {
                for (int choice = 0; choice < CHOICE_COUNT; choice++) {
                    f->facts.category = (Category)category;
                    f->facts.channel = (Channel)channel;
                    f->facts.priority = (Priority)priority;
                    say(f, (Choice)choice, f->facts.category, f->facts.channel);
                    check_pair(f, (Choice)choice, NOON, false);
                    check_pair(f, (Choice)choice, NIGHT, true);
                    checked += 2;
                }
            }
        }
    }
    assert_int_equal(checked, 10 * 7 * 4 * CHOICE_COUNT * 2);
}

static void all_suppressions_hold_but_opt_outs_for_what_ignores_them(void **state)
{
    Fixture *f = *state;
    consent(f, CATEGORY_NONE, CHANNEL_NONE, true);
    for (int category = 1; category < CATEGORY_COUNT; category++) {
        for (int reason = 1; reason < SUPPRESSION_COUNT; reason++) {
            f->facts.category = (Category)category;
            f->facts.suppression = (SuppressionReason)reason;
            if (reason == SUPPRESSION_OPT_OUT && category_ignores_opt_out(f->facts.category)) {
                expect(f, GATE_GO, GATE_NO_REASON, NULL);
                continue;
            }
            GateDecision d = gate_decide(&f->facts);
            assert_int_equal(d.verdict, GATE_SUPPRESS);
            assert_string_equal(
                gate_reason_name(d.reason), suppression_reason_name((SuppressionReason)reason));
        }
    }
}

// ---- the order ----

static void the_first_refusal_in_the_order_is_named(void **state)
{
    Fixture *f = *state;
    f->facts.category = CATEGORY_MARKETING;
    f->tenant.suspended = true;
    f->facts.expires_at_us = f->facts.now_us;
    f->facts.suppression = SUPPRESSION_HARD_BOUNCE;
    f->person.unsubscribed = true;
    prefer(f, (GatePreference){.off = true});
    f->facts.has_address = false;
    f->tenant.limits.per_day = 1;
    f->tenant.over_limit = OVER_LIMIT_SUPPRESS;
    f->facts.tenant_place = (LimitPlace){2, 2};
    f->tenant.quiet_hours = (QuietHours){660, 780};
    expect_refusal(f, GATE_TENANT_SUSPENDED);
    f->tenant.suspended = false;
    expect_refusal(f, GATE_EXPIRED);
    f->facts.expires_at_us = 0;
    expect_refusal(f, GATE_HARD_BOUNCE);
    f->facts.suppression = SUPPRESSION_NONE;
    expect_refusal(f, GATE_UNSUBSCRIBED);
    f->person.unsubscribed = false;
    expect_refusal(f, GATE_NO_CONSENT);
    consent(f, CATEGORY_NONE, CHANNEL_NONE, true);
    expect_refusal(f, GATE_PREFERENCE);
    f->person.preference_count = 0;
    expect_refusal(f, GATE_NO_ADDRESS);
    f->facts.has_address = true;
    assert_int_equal(gate_refuse(&f->facts), GATE_NO_REASON); // counted
    expect(f, GATE_SUPPRESS, GATE_RATE_LIMIT, NULL);
    f->facts.tenant_place = (LimitPlace){1, 1};
    expect(f, GATE_DEFER, GATE_QUIET_HOURS, "2026-05-01T13:00:00Z");
    f->tenant.quiet_hours = (QuietHours){0, 0};
    expect(f, GATE_GO, GATE_NO_REASON, NULL);
}

static void an_inline_address_has_no_wishes_and_no_nights(void **state)
{
    Fixture *f = *state;
    f->facts.person = NULL;
    f->facts.category = CATEGORY_MARKETING;
    f->facts.now_us = instant(NIGHT);
    f->facts.has_consent = true;
    f->tenant.quiet_hours = (QuietHours){1320, 420};
    expect(f, GATE_GO, GATE_NO_REASON, NULL);
    f->facts.suppression = SUPPRESSION_OPT_OUT;
    expect_refusal(f, GATE_OPT_OUT);
}

// C48: "marketing_consent JSONB NOT NULL".
static void marketing_to_an_unknown_address_needs_the_callers_word(void **state)
{
    Fixture *f = *state;
    f->facts.person = NULL;
    for (int category = 1; category < CATEGORY_COUNT; category++) {
        f->facts.category = (Category)category;
        bool needed = category == CATEGORY_MARKETING;
        f->facts.has_consent = false;
        assert_int_equal(gate_refuse(&f->facts), needed ? GATE_NO_CONSENT : GATE_NO_REASON);
        f->facts.has_consent = true;
        assert_int_equal(gate_refuse(&f->facts), GATE_NO_REASON);
    }
    f->facts.has_address = false; // an unknown recipient's id alone: the address is what is missing
    f->facts.category = CATEGORY_MARKETING;
    f->facts.has_consent = false;
    expect_refusal(f, GATE_NO_ADDRESS);
}

static void a_recipients_own_record_decides_and_not_the_callers_word(void **state)
{
    Fixture *f = *state;
    f->facts.category = CATEGORY_MARKETING;
    f->facts.has_consent = true;
    expect_refusal(f, GATE_NO_CONSENT); // the record says nothing
    consent(f, CATEGORY_MARKETING, CHANNEL_NONE, false);
    expect_refusal(f, GATE_NO_CONSENT);
    const GatePerson *const owners[] = {&f->person};
    f->facts.person = NULL;
    f->facts.owners = owners;
    f->facts.owner_count = 1;
    expect_refusal(f, GATE_NO_CONSENT);
    f->person.consent_count = 0;
    consent(f, CATEGORY_MARKETING, CHANNEL_NONE, true);
    f->facts.has_consent = false;
    expect(f, GATE_GO, GATE_NO_REASON, NULL);
}

static void what_one_of_an_addresss_owners_refuses_is_refused(void **state)
{
    Fixture *f = *state;
    GatePerson gone = {.unsubscribed = true};
    GatePerson willing = {0};
    const GatePerson *const owners[] = {&willing, &gone};
    f->facts.owners = owners;
    f->facts.owner_count = 2;
    expect_refusal(f, GATE_UNSUBSCRIBED);
    f->facts.person = NULL;
    expect_refusal(f, GATE_UNSUBSCRIBED);
    f->facts.category = CATEGORY_TRANSACTIONAL;
    expect(f, GATE_GO, GATE_NO_REASON, NULL);
    f->facts.category = CATEGORY_BILLING;
    f->facts.owner_count = 1;
    expect(f, GATE_GO, GATE_NO_REASON, NULL);
}

static void the_more_specific_word_wins(void **state)
{
    Fixture *f = *state;
    prefer(f, (GatePreference){.off = true});
    prefer(f, (GatePreference){.channel = CHANNEL_EMAIL});
    expect(f, GATE_GO, GATE_NO_REASON, NULL);
    prefer(f, (GatePreference){.category = CATEGORY_BILLING, .off = true});
    expect_refusal(f, GATE_PREFERENCE);
    prefer(f, (GatePreference){.category = CATEGORY_BILLING, .channel = CHANNEL_EMAIL});
    expect(f, GATE_GO, GATE_NO_REASON, NULL);
    f->facts.channel = CHANNEL_SMS;
    expect_refusal(f, GATE_PREFERENCE);
}

// ---- times ----

static void the_recipients_own_quiet_hours_and_zone_win(void **state)
{
    Fixture *f = *state;
    f->tenant.quiet_hours = (QuietHours){660, 840};
    f->tenant.zone = zone_named(f->zones, "UTC");
    expect(f, GATE_DEFER, GATE_QUIET_HOURS, "2026-05-01T14:00:00Z");
    f->person.zone = zone_named(f->zones, "Asia/Tokyo"); // nine in the evening there
    expect(f, GATE_GO, GATE_NO_REASON, NULL);
    f->person.has_quiet_hours = true;
    f->person.quiet_hours = (QuietHours){1200, 420};
    expect(f, GATE_DEFER, GATE_QUIET_HOURS, "2026-05-01T22:00:00Z");
    f->person.quiet_hours = (QuietHours){0, 0}; // none, whatever the tenant says
    f->person.zone = NULL;
    expect(f, GATE_GO, GATE_NO_REASON, NULL);
}

// For what is tried again after it was accepted.
static void a_decision_names_the_quiet_hours_that_held(void **state)
{
    Fixture *f = *state;
    f->tenant.quiet_hours = (QuietHours){1320, 420};
    f->tenant.zone = zone_named(f->zones, "Asia/Tokyo");
    GateDecision decision = gate_decide(&f->facts);
    assert_int_equal(decision.quiet.start_minute, 1320);
    assert_string_equal(zone_name(decision.zone), "Asia/Tokyo");
    f->facts.category = CATEGORY_SECURITY;
    decision = gate_decide(&f->facts);
    assert_int_equal(decision.quiet.start_minute, decision.quiet.end_minute);
}

static void what_is_scheduled_into_the_night_waits_for_the_morning(void **state)
{
    Fixture *f = *state;
    f->facts.scheduled_for_us = instant("2026-05-01T18:00:00Z");
    expect(f, GATE_DEFER, GATE_SCHEDULE, "2026-05-01T18:00:00Z");
    f->tenant.quiet_hours = (QuietHours){1320, 420};
    expect(f, GATE_DEFER, GATE_SCHEDULE, "2026-05-01T18:00:00Z");
    f->facts.scheduled_for_us = instant(NIGHT);
    expect(f, GATE_DEFER, GATE_QUIET_HOURS, "2026-05-02T07:00:00Z");
    f->facts.category = CATEGORY_SECURITY;
    expect(f, GATE_DEFER, GATE_SCHEDULE, NIGHT);
}

static void a_limit_of_a_channel_counts_beside_the_others(void **state)
{
    Fixture *f = *state;
    f->tenant.channel_limits[CHANNEL_SMS].per_minute = 1;
    f->facts.channel_place = (LimitPlace){2, 2};
    expect(f, GATE_GO, GATE_NO_REASON, NULL); // it is an e-mail
    f->tenant.channel_limits[CHANNEL_EMAIL].per_minute = 1;
    expect(f, GATE_DEFER, GATE_RATE_LIMIT, "2026-05-01T12:01:00Z");
    f->facts.priority = PRIORITY_CRITICAL;
    expect(f, GATE_GO, GATE_NO_REASON, NULL);
    f->tenant.recipient_channel_limits[CHANNEL_EMAIL].per_day = 1;
    f->facts.recipient_channel_place = (LimitPlace){2, 2};
    expect(f, GATE_DEFER, GATE_RATE_LIMIT, "2026-05-02T00:00:00Z");
    f->tenant.over_limit = OVER_LIMIT_SUPPRESS;
    expect(f, GATE_SUPPRESS, GATE_RATE_LIMIT, NULL);
}

static void the_tenants_policy_switches_channels_and_categories_off(void **state)
{
    Fixture *f = *state;
    f->tenant.channels_off = 1U << CHANNEL_SMS;
    f->tenant.categories_off = 1U << CATEGORY_SOCIAL;
    f->facts.category = CATEGORY_BILLING;
    expect(f, GATE_GO, GATE_NO_REASON, NULL);
    f->facts.category = CATEGORY_SOCIAL;
    f->facts.priority = PRIORITY_CRITICAL;
    expect(f, GATE_SUPPRESS, GATE_TENANT_POLICY, NULL);
    f->facts.category = CATEGORY_BILLING;
    f->facts.channel = CHANNEL_SMS;
    expect(f, GATE_SUPPRESS, GATE_TENANT_POLICY, NULL);
    f->tenant.suspended = true;
    expect(f, GATE_SUPPRESS, GATE_TENANT_SUSPENDED, NULL);
}

static void over_the_limit_it_waits_for_its_turn_or_is_suppressed(void **state)
{
    Fixture *f = *state;
    f->tenant.limits.per_minute = 10;
    f->facts.tenant_place = (LimitPlace){11, 11};
    expect(f, GATE_DEFER, GATE_RATE_LIMIT, "2026-05-01T12:01:00Z");
    f->facts.scheduled_for_us = instant("2026-05-01T18:00:00Z"); // its turn has come by then
    expect(f, GATE_DEFER, GATE_SCHEDULE, "2026-05-01T18:00:00Z");
    f->facts.scheduled_for_us = 0;
    f->tenant.over_limit = OVER_LIMIT_SUPPRESS;
    expect(f, GATE_SUPPRESS, GATE_RATE_LIMIT, NULL);
    f->facts.priority = PRIORITY_CRITICAL; // does not wait behind the tenant's own campaign ...
    expect(f, GATE_GO, GATE_NO_REASON, NULL);
    f->tenant.recipient_limits.per_day = 5; // ... but no recipient is flooded
    f->facts.recipient_place = (LimitPlace){6, 6};
    expect(f, GATE_SUPPRESS, GATE_RATE_LIMIT, NULL);
    f->tenant.over_limit = OVER_LIMIT_DEFER;
    expect(f, GATE_DEFER, GATE_RATE_LIMIT, "2026-05-02T00:00:00Z");
    f->facts.recipient_place = (LimitPlace){1, 5 * 400}; // beyond a year: never
    expect(f, GATE_SUPPRESS, GATE_RATE_LIMIT, NULL);
}

static void a_digest_of_the_night_goes_out_in_the_morning(void **state)
{
    Fixture *f = *state;
    prefer(f, (GatePreference){.plan = {FREQUENCY_HOURLY, 0, 0}});
    expect(f, GATE_GATHER, GATE_DIGEST, "2026-05-01T13:00:00Z");
    f->tenant.quiet_hours = (QuietHours){1320, 420};
    f->facts.now_us = instant(NIGHT);
    expect(f, GATE_GATHER, GATE_DIGEST, "2026-05-02T07:00:00Z");
    f->facts.now_us = instant("2026-05-02T03:10:00Z");
    expect(f, GATE_GATHER, GATE_DIGEST, "2026-05-02T07:00:00Z");
    f->facts.now_us = instant("2026-05-01T21:30:00Z"); // its border lies in the night
    expect(f, GATE_GATHER, GATE_DIGEST, "2026-05-02T07:00:00Z");
    f->facts.scheduled_for_us = instant("2026-05-03T09:30:00Z");
    expect(f, GATE_GATHER, GATE_DIGEST, "2026-05-03T10:00:00Z");
    f->facts.priority = PRIORITY_CRITICAL;
    expect(f, GATE_DEFER, GATE_SCHEDULE, "2026-05-03T09:30:00Z");
}

static void what_would_expire_while_it_waits_is_refused_at_once(void **state)
{
    Fixture *f = *state;
    f->tenant.quiet_hours = (QuietHours){660, 840};
    f->facts.expires_at_us = instant("2026-05-01T14:00:00Z");
    expect(f, GATE_SUPPRESS, GATE_EXPIRED, NULL);
    f->facts.expires_at_us = instant("2026-05-01T14:00:00.000001Z");
    expect(f, GATE_DEFER, GATE_QUIET_HOURS, "2026-05-01T14:00:00Z");
}

// ---- guardians ----

static void a_minors_notification_is_routed_as_the_record_or_the_tenant_says(void **state)
{
    Fixture *f = *state;
    for (int own = 0; own < GUARDIAN_COUNT; own++) {
        for (int tenants = 0; tenants < GUARDIAN_COUNT; tenants++) {
            f->person.guardian_routing = (GuardianRouting)own;
            f->tenant.guardian_routing = (GuardianRouting)tenants;
            int said = own == GUARDIAN_UNSAID ? tenants : own;
            f->person.minor = true;
            assert_int_equal(
                gate_route(&f->tenant, &f->person), said == GUARDIAN_UNSAID ? GUARDIAN_NONE : said);
            f->person.minor = false;
            assert_int_equal(gate_route(&f->tenant, &f->person), GUARDIAN_NONE);
        }
    }
    assert_int_equal(gate_route(&f->tenant, NULL), GUARDIAN_NONE);
}

static void a_redirected_notification_needs_no_address_of_the_minor(void **state)
{
    Fixture *f = *state;
    f->person.minor = true;
    f->facts.has_address = false;
    f->facts.suppression = SUPPRESSION_HARD_BOUNCE;
    f->tenant.guardian_routing = GUARDIAN_REDIRECT;
    expect(f, GATE_GO, GATE_NO_REASON, NULL);
    prefer(
        f, (GatePreference){.off = true}); // what the minor does not want the guardian does not get
    expect_refusal(f, GATE_PREFERENCE);
    f->person.preference_count = 0;
    f->tenant.guardian_routing = GUARDIAN_COPY;
    expect_refusal(f, GATE_HARD_BOUNCE);
}

// ---- names and properties ----

static void every_reason_has_its_name(void **state)
{
    (void)state;
    for (int r = GATE_TENANT_SUSPENDED; r < GATE_REASON_COUNT; r++) {
        bool waits = r >= GATE_RATE_LIMIT;
        assert_int_equal(gate_reason_deferred((GateReason)r)[0] != '\0', waits);
        assert_int_equal(gate_reason_name((GateReason)r)[0] != '\0', r != GATE_SCHEDULE);
    }
    assert_string_equal(gate_reason_name(GATE_NO_REASON), "");
    assert_string_equal(gate_reason_deferred(GATE_NO_REASON), "");
}

// Law: what waits waits for a later time, at which it is neither quiet nor expired.
static void nothing_is_put_off_into_a_night_or_into_the_past(void **state)
{
    Fixture *f = *state;
    uint64_t random = 31;
    int waiting = 0;
    for (int i = 0; i < RANDOM_ROUNDS; i++) {
        GateCase *c = &f->facts;
        Zone *zone = zone_named(f->zones, ODD_ZONES[next_random(&random) % ODD_ZONE_COUNT]);
        c->now_us = random_instant(&random);
        c->scheduled_for_us =
            next_random(&random) % 2 == 0
                ? 0
                : c->now_us + (int64_t)(next_random(&random) % (uint64_t)(3 * DAY_US));
        c->expires_at_us = c->now_us + 1 + (int64_t)(next_random(&random) % (uint64_t)(9 * DAY_US));
        c->recipient_place = (LimitPlace){1 + (int64_t)(next_random(&random) % 50), 1};
        f->tenant.recipient_limits.per_minute = (uint32_t)(next_random(&random) % 20);
        f->person.zone = zone;
        f->person.has_quiet_hours = true;
        f->person.quiet_hours = (QuietHours){
            (int32_t)(next_random(&random) % MINUTES_OF_DAY),
            (int32_t)(next_random(&random) % MINUTES_OF_DAY)};
        f->person.preference_count = 0;
        prefer(
            f, (GatePreference){
                   .plan = {
                       (Frequency)(next_random(&random) % FREQUENCY_COUNT),
                       (int32_t)(next_random(&random) % MINUTES_OF_DAY),
                       (int32_t)(next_random(&random) % 8)}});
        GateDecision d = gate_decide(c);
        if (d.verdict == GATE_DEFER || d.verdict == GATE_GATHER) {
            waiting++;
            assert_true(d.until_us > c->now_us && d.until_us >= c->scheduled_for_us);
            assert_true(d.until_us < c->expires_at_us);
            assert_false(quiet_hours_hold(f->person.quiet_hours, zone, d.until_us));
        } else if (d.verdict == GATE_GO) {
            assert_false(quiet_hours_hold(f->person.quiet_hours, zone, c->now_us));
        } else {
            assert_int_equal(d.reason, GATE_EXPIRED);
        }
    }
    assert_true(waiting > RANDOM_ROUNDS / 4);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(all_pairs_of_category_channel_priority_and_wish),
        TEST(all_suppressions_hold_but_opt_outs_for_what_ignores_them),
        TEST(the_first_refusal_in_the_order_is_named),
        TEST(an_inline_address_has_no_wishes_and_no_nights),
        TEST(marketing_to_an_unknown_address_needs_the_callers_word),
        TEST(a_recipients_own_record_decides_and_not_the_callers_word),
        TEST(what_one_of_an_addresss_owners_refuses_is_refused),
        TEST(the_more_specific_word_wins),
        TEST(the_recipients_own_quiet_hours_and_zone_win),
        TEST(a_decision_names_the_quiet_hours_that_held),
        TEST(what_is_scheduled_into_the_night_waits_for_the_morning),
        TEST(over_the_limit_it_waits_for_its_turn_or_is_suppressed),
        TEST(a_limit_of_a_channel_counts_beside_the_others),
        TEST(the_tenants_policy_switches_channels_and_categories_off),
        TEST(a_digest_of_the_night_goes_out_in_the_morning),
        TEST(what_would_expire_while_it_waits_is_refused_at_once),
        TEST(a_minors_notification_is_routed_as_the_record_or_the_tenant_says),
        TEST(a_redirected_notification_needs_no_address_of_the_minor),
        TEST(every_reason_has_its_name),
        TEST(nothing_is_put_off_into_a_night_or_into_the_past),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
