// SPDX-License-Identifier: Apache-2.0
#include "common/model/rules/gate_internal.h"

#include "common/model/suppressions.h"

#define DEFER_MAX_US (366 * INT64_C(86400000000)) // as far as a caller may schedule

const char *gate_reason_name(GateReason reason)
{
    switch (reason) {
    case GATE_TENANT_SUSPENDED:
        return "tenant_suspended";
    case GATE_TENANT_POLICY:
        return "tenant_policy";
    case GATE_EXPIRED:
        return "expired";
    case GATE_HARD_BOUNCE:
        return suppression_reason_name(SUPPRESSION_HARD_BOUNCE);
    case GATE_COMPLAINT:
        return suppression_reason_name(SUPPRESSION_COMPLAINT);
    case GATE_INVALID_ADDRESS:
        return suppression_reason_name(SUPPRESSION_INVALID_ADDRESS);
    case GATE_OPT_OUT:
        return suppression_reason_name(SUPPRESSION_OPT_OUT);
    case GATE_MANUAL:
        return suppression_reason_name(SUPPRESSION_MANUAL);
    case GATE_COMPLIANCE:
        return suppression_reason_name(SUPPRESSION_COMPLIANCE);
    case GATE_RATE_LIMIT:
        return suppression_reason_name(SUPPRESSION_RATE_LIMIT);
    case GATE_UNREADABLE:
        return suppression_reason_name(SUPPRESSION_UNREADABLE);
    case GATE_UNSUBSCRIBED:
        return "unsubscribed";
    case GATE_NO_CONSENT:
        return "no_consent";
    case GATE_PREFERENCE:
        return "preference";
    case GATE_NO_ADDRESS:
        return "no_address";
    case GATE_QUIET_HOURS:
        return "quiet_hours";
    case GATE_DIGEST:
        return "digest";
    case GATE_NO_REASON:
    case GATE_SCHEDULE:
    case GATE_REASON_COUNT:
        break;
    }
    return "";
}

const char *gate_reason_deferred(GateReason reason)
{
    switch ((int)reason) {
    case GATE_QUIET_HOURS:
        return "quiet";
    case GATE_RATE_LIMIT:
        return "limit";
    case GATE_DIGEST:
        return "digest";
    case GATE_SCHEDULE:
        return "schedule";
    default:
        return "";
    }
}

// ---- refusals ----

static GateReason reason_of(SuppressionReason suppression)
{
    switch (suppression) {
    case SUPPRESSION_HARD_BOUNCE:
        return GATE_HARD_BOUNCE;
    case SUPPRESSION_COMPLAINT:
        return GATE_COMPLAINT;
    case SUPPRESSION_INVALID_ADDRESS:
        return GATE_INVALID_ADDRESS;
    case SUPPRESSION_OPT_OUT:
        return GATE_OPT_OUT;
    case SUPPRESSION_MANUAL:
        return GATE_MANUAL;
    case SUPPRESSION_COMPLIANCE:
        return GATE_COMPLIANCE;
    case SUPPRESSION_RATE_LIMIT:
        return GATE_RATE_LIMIT;
    case SUPPRESSION_UNREADABLE:
        return GATE_UNREADABLE;
    case SUPPRESSION_NONE:
    case SUPPRESSION_COUNT:
        break;
    }
    return GATE_NO_REASON;
}

// 0: not about it; more is more specific.
static int rank_of(const GateCase *c, Category category, Channel channel)
{
    bool fits = (category == CATEGORY_NONE || category == c->category) &&
                (channel == CHANNEL_NONE || channel == c->channel);
    return fits ? 1 + 2 * (category != CATEGORY_NONE) + (channel != CHANNEL_NONE) : 0;
}

const GatePreference *gate_preference(const GateCase *c, const GatePerson *person)
{
    const GatePreference *best = NULL;
    int best_rank = 0;
    for (size_t i = 0; person != NULL && i < person->preference_count; i++) {
        const GatePreference *one = &person->preferences[i];
        int rank = rank_of(c, one->category, one->channel);
        if (rank > best_rank) {
            best = one;
            best_rank = rank;
        }
    }
    return best;
}

const GateConsent *gate_consent(const GateCase *c, const GatePerson *person)
{
    const GateConsent *best = NULL;
    int best_rank = 0;
    for (size_t i = 0; i < person->consent_count; i++) {
        const GateConsent *one = &person->consents[i];
        int rank = rank_of(c, one->category, one->channel);
        if (rank > best_rank) {
            best = one;
            best_rank = rank;
        }
    }
    return best;
}

// Marketing needs a consent that grants it; everything else only that none refuses it.
static bool is_consented(const GateCase *c, const GatePerson *person)
{
    const GateConsent *consent = gate_consent(c, person);
    return consent == NULL ? c->category != CATEGORY_MARKETING : consent->granted;
}

GateReason gate_refuse_person(const GateCase *c, const GatePerson *person)
{
    if (person->unsubscribed && c->priority != PRIORITY_CRITICAL) {
        return GATE_UNSUBSCRIBED;
    }
    if (!is_consented(c, person)) {
        return GATE_NO_CONSENT;
    }
    const GatePreference *preference = gate_preference(c, person);
    return preference != NULL && preference->off ? GATE_PREFERENCE : GATE_NO_REASON;
}

// A recipient's own record decides, not what the caller says of it. Of an address that no recipient
// has only the caller knows.
static GateReason refuse_people(const GateCase *c)
{
    if (category_ignores_opt_out(c->category)) {
        return GATE_NO_REASON;
    }
    GateReason reason = c->person == NULL ? GATE_NO_REASON : gate_refuse_person(c, c->person);
    for (size_t i = 0; reason == GATE_NO_REASON && i < c->owner_count; i++) {
        reason = gate_refuse_person(c, c->owners[i]);
    }
    bool unknown = c->person == NULL && c->owner_count == 0 && c->has_address;
    if (unknown && c->category == CATEGORY_MARKETING && !c->has_consent) {
        reason = GATE_NO_CONSENT;
    }
    return reason;
}

static bool is_switched_off(const GateCase *c)
{
    return channel_set_has(c->tenant->channels_off, c->channel) ||
           (c->tenant->categories_off >> c->category & 1) != 0;
}

GateReason gate_refuse(const GateCase *c)
{
    if (c->tenant->suspended) {
        return GATE_TENANT_SUSPENDED;
    }
    if (is_switched_off(c)) {
        return GATE_TENANT_POLICY;
    }
    if (c->expires_at_us != 0 && c->expires_at_us <= c->now_us) {
        return GATE_EXPIRED;
    }
    bool redirected = gate_route(c->tenant, c->person) == GUARDIAN_REDIRECT;
    bool waived = c->suppression == SUPPRESSION_OPT_OUT && category_ignores_opt_out(c->category);
    GateReason reason = redirected || waived ? GATE_NO_REASON : reason_of(c->suppression);
    if (reason == GATE_NO_REASON) {
        reason = refuse_people(c);
    }
    if (reason == GATE_NO_REASON && !redirected && !c->has_address) {
        reason = GATE_NO_ADDRESS;
    }
    return reason;
}

GuardianRouting gate_route(const GateTenant *tenant, const GatePerson *person)
{
    if (person == NULL || !person->minor) {
        return GUARDIAN_NONE;
    }
    GuardianRouting own = person->guardian_routing;
    GuardianRouting routing = own == GUARDIAN_UNSAID ? tenant->guardian_routing : own;
    return routing == GUARDIAN_COPY || routing == GUARDIAN_REDIRECT ? routing : GUARDIAN_NONE;
}

// ---- times ----

// A one-time code does not wait behind the tenant's own campaign, but no recipient is flooded.
void gate_turns(const GateCase *c, GateTurn ret[GATE_LIMITS])
{
    const GateTenant *t = c->tenant;
    bool waits = c->priority != PRIORITY_CRITICAL;
    const struct {
        const Limits *limits;
        const LimitPlace *place;
        bool counts;
    } limits[GATE_LIMITS] = {
        [GATE_LIMIT_TENANT] = {&t->limits, &c->tenant_place, waits},
        [GATE_LIMIT_CHANNEL] = {&t->channel_limits[c->channel], &c->channel_place, waits},
        [GATE_LIMIT_RECIPIENT] = {&t->recipient_limits, &c->recipient_place, true},
        [GATE_LIMIT_RECIPIENT_CHANNEL] =
            {&t->recipient_channel_limits[c->channel], &c->recipient_channel_place, true},
    };
    for (int i = 0; i < GATE_LIMITS; i++) {
        ret[i] = (GateTurn){
            .limited = limits_any(limits[i].limits),
            .counts = limits[i].counts,
            .turn_us = limits_turn(limits[i].limits, limits[i].place, c->now_us)};
    }
}

static int64_t find_turn(const GateCase *c)
{
    GateTurn turns[GATE_LIMITS];
    gate_turns(c, turns);
    int64_t turn_us = 0;
    for (int i = 0; i < GATE_LIMITS; i++) {
        bool later = turns[i].counts && turns[i].turn_us > turn_us;
        turn_us = later ? turns[i].turn_us : turn_us;
    }
    return turn_us;
}

bool gate_is_urgent(const GateCase *c)
{
    return c->priority == PRIORITY_CRITICAL || c->category == CATEGORY_SECURITY;
}

Zone *gate_zone(const GateCase *c)
{
    if (c->person != NULL && c->person->zone != NULL) {
        return c->person->zone;
    }
    return c->tenant->zone != NULL ? c->tenant->zone : c->utc;
}

QuietHours gate_quiet_hours(const GateCase *c)
{
    if (c->person == NULL || gate_is_urgent(c)) {
        return (QuietHours){0, 0};
    }
    return c->person->has_quiet_hours ? c->person->quiet_hours : c->tenant->quiet_hours;
}

static const DigestPlan *find_plan(const GateCase *c)
{
    if (c->no_digest || gate_is_urgent(c) || category_ignores_opt_out(c->category)) {
        return NULL;
    }
    const GatePreference *preference = gate_preference(c, c->person);
    return preference != NULL && digest_plan_gathers(&preference->plan) ? &preference->plan : NULL;
}

// What cannot go out before it expires is refused now, when the caller can still learn of it.
static GateDecision wait_until(
    const GateCase *c, GateVerdict verdict, GateReason reason, int64_t us)
{
    if (c->expires_at_us != 0 && c->expires_at_us <= us) {
        return (GateDecision){.verdict = GATE_SUPPRESS, .reason = GATE_EXPIRED};
    }
    return (GateDecision){.verdict = verdict, .reason = reason, .until_us = us};
}

// The schedule, the limits' turn and the quiet hours each push the time on, so that what is
// scheduled into the night is deferred as what arrives in it.
static GateDecision decide_time(const GateCase *c, int64_t turn_us)
{
    GateReason reason = GATE_NO_REASON;
    int64_t at_us = c->now_us;
    if (c->scheduled_for_us > at_us) {
        at_us = c->scheduled_for_us;
        reason = GATE_SCHEDULE;
    }
    if (turn_us > at_us) {
        at_us = turn_us;
        reason = GATE_RATE_LIMIT;
    }
    Zone *zone = gate_zone(c);
    QuietHours quiet = gate_quiet_hours(c);
    const DigestPlan *plan = find_plan(c);
    if (plan != NULL) {
        // A digest of the night goes out in the morning, with all that the night gathered.
        int64_t flush_us = digest_window_flush_at(plan, zone, at_us);
        flush_us = quiet_hours_end(quiet, zone, flush_us);
        return wait_until(c, GATE_GATHER, GATE_DIGEST, flush_us);
    }
    int64_t end_us = quiet_hours_end(quiet, zone, at_us);
    if (end_us > at_us) {
        at_us = end_us;
        reason = GATE_QUIET_HOURS;
    }
    if (reason == GATE_NO_REASON) {
        return (GateDecision){.verdict = GATE_GO};
    }
    return wait_until(c, GATE_DEFER, reason, at_us);
}

GateDecision gate_decide(const GateCase *c)
{
    GateReason refusal = gate_refuse(c);
    if (refusal != GATE_NO_REASON) {
        return (GateDecision){.verdict = GATE_SUPPRESS, .reason = refusal};
    }
    int64_t turn_us = find_turn(c);
    bool too_far = turn_us > c->now_us + DEFER_MAX_US;
    if (turn_us > 0 && (too_far || c->tenant->over_limit == OVER_LIMIT_SUPPRESS)) {
        return (GateDecision){.verdict = GATE_SUPPRESS, .reason = GATE_RATE_LIMIT};
    }
    GateDecision decision = decide_time(c, turn_us);
    if (decision.verdict != GATE_SUPPRESS) {
        decision.quiet = gate_quiet_hours(c);
        decision.zone = gate_zone(c);
    }
    return decision;
}
