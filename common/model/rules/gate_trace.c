// SPDX-License-Identifier: Apache-2.0
#include "common/model/rules/gate_trace.h"

#include <stdio.h>
#include <string.h>

#include "common/model/rules/gate_internal.h"
#include "common/model/suppressions.h"

// By GateStep.
static const char LETTERS[] = " GTPESUCFALWQD";
_Static_assert(sizeof LETTERS == GATE_STEP_COUNT + 1, "a letter for each step");

typedef struct Trace {
    char *out;
    size_t used;
} Trace;

// Not by snprintf: each notification has five to ten of them. A step without room is left out
// whole.
static void add(Trace *trace, GateStep step, GateOutcome outcome, const char *rule)
{
    size_t len = strlen(rule);
    if (trace->used + len + 4 >= GATE_TRACE_SIZE) {
        return;
    }
    char *at = trace->out + trace->used;
    *at++ = LETTERS[step];
    *at++ = (char)outcome;
    if (len > 0) {
        *at++ = '(';
        memcpy(at, rule, len);
        at += len;
        *at++ = ')';
    }
    *at = '\0';
    trace->used = (size_t)(at - trace->out);
}

// ---- refusals ----

static GateStep step_of(GateReason reason)
{
    switch (reason) {
    case GATE_TENANT_SUSPENDED:
        return GATE_STEP_TENANT;
    case GATE_TENANT_POLICY:
        return GATE_STEP_POLICY;
    case GATE_EXPIRED:
        return GATE_STEP_EXPIRY;
    case GATE_HARD_BOUNCE:
    case GATE_COMPLAINT:
    case GATE_INVALID_ADDRESS:
    case GATE_OPT_OUT:
    case GATE_MANUAL:
    case GATE_COMPLIANCE:
    case GATE_UNREADABLE:
        return GATE_STEP_SUPPRESSION;
    case GATE_UNSUBSCRIBED:
        return GATE_STEP_OPT_OUT;
    case GATE_NO_CONSENT:
        return GATE_STEP_CONSENT;
    case GATE_PREFERENCE:
        return GATE_STEP_PREFERENCE;
    case GATE_NO_ADDRESS:
        return GATE_STEP_ADDRESS;
    case GATE_RATE_LIMIT:
        return GATE_STEP_LIMITS;
    case GATE_QUIET_HOURS:
        return GATE_STEP_QUIET_HOURS;
    case GATE_DIGEST:
        return GATE_STEP_DIGEST;
    case GATE_SCHEDULE:
        return GATE_STEP_SCHEDULE;
    case GATE_NO_REASON:
    case GATE_REASON_COUNT:
        break;
    }
    return GATE_STEP_NONE;
}

static const char *listing_name(GateListing listing)
{
    switch (listing) {
    case GATE_LISTING_TENANT:
        return "tenant";
    case GATE_LISTING_PLATFORM:
        return "platform";
    case GATE_LISTING_OLD_KEY:
        return "old_key";
    case GATE_LISTING_DOMAIN:
        return "domain";
    case GATE_LISTING_NONE:
        break;
    }
    return "";
}

static const char *entry_name(char out[16], bool found, Category category, Channel channel)
{
    out[0] = '\0';
    if (found) {
        (void)snprintf(out, 16, "%d/%d", (int)category, (int)channel);
    }
    return out;
}

static const char *consent_rule(const GateCase *c, const GatePerson *person, char out[16])
{
    const GateConsent *consent = gate_consent(c, person);
    return consent == NULL ? "" : entry_name(out, true, consent->category, consent->channel);
}

static const char *preference_rule(const GateCase *c, const GatePerson *person, char out[16])
{
    const GatePreference *found = gate_preference(c, person);
    return found == NULL ? "" : entry_name(out, true, found->category, found->channel);
}

// What the recipients say, up to what refuses (GATE_NO_REASON: nothing does).
static void add_person(Trace *trace, const GateCase *c, const GatePerson *person, GateReason reason)
{
    char rule[16];
    bool critical = person->unsubscribed && c->priority == PRIORITY_CRITICAL;
    GateStep last = step_of(reason);
    if (last == GATE_STEP_OPT_OUT) {
        add(trace, GATE_STEP_OPT_OUT, GATE_REFUSED, "");
        return;
    }
    add(trace, GATE_STEP_OPT_OUT, critical ? GATE_WAIVED : GATE_PASSED, "");
    bool consents = gate_consent(c, person) != NULL || last == GATE_STEP_CONSENT;
    if (consents) {
        add(trace, GATE_STEP_CONSENT, last == GATE_STEP_CONSENT ? GATE_REFUSED : GATE_PASSED,
            consent_rule(c, person, rule));
    }
    if (last != GATE_STEP_CONSENT && gate_preference(c, person) != NULL) {
        add(trace, GATE_STEP_PREFERENCE, last == GATE_STEP_PREFERENCE ? GATE_REFUSED : GATE_PASSED,
            preference_rule(c, person, rule));
    }
}

static void add_people(Trace *trace, const GateCase *c)
{
    GateReason own = c->person == NULL ? GATE_NO_REASON : gate_refuse_person(c, c->person);
    if (category_ignores_opt_out(c->category)) {
        if (own != GATE_NO_REASON) {
            add(trace, step_of(own), GATE_WAIVED, "");
        }
        return;
    }
    if (c->person != NULL) {
        add_person(trace, c, c->person, own);
    }
    for (size_t i = 0; own == GATE_NO_REASON && i < c->owner_count; i++) {
        own = gate_refuse_person(c, c->owners[i]);
        if (own != GATE_NO_REASON) {
            add(trace, step_of(own), GATE_REFUSED, "owner");
        }
    }
    bool unknown = c->person == NULL && c->owner_count == 0 && c->has_address;
    if (unknown && c->category == CATEGORY_MARKETING) {
        add(trace, GATE_STEP_CONSENT, c->has_consent ? GATE_PASSED : GATE_REFUSED,
            c->has_consent ? "caller" : "");
    }
}

// The order of gate_refuse().
static void add_refusals(Trace *trace, const GateCase *c, GateReason reason)
{
    // Before the limits are asked it is a suppression's reason.
    GateStep last = reason == GATE_RATE_LIMIT ? GATE_STEP_SUPPRESSION : step_of(reason);
    const GateTenant *t = c->tenant;
    add(trace, GATE_STEP_TENANT, last == GATE_STEP_TENANT ? GATE_REFUSED : GATE_PASSED, "");
    if (last == GATE_STEP_TENANT) {
        return;
    }
    if (t->channels_off != 0 || t->categories_off != 0) {
        bool off = channel_set_has(t->channels_off, c->channel);
        bool refused = last == GATE_STEP_POLICY;
        add(trace, GATE_STEP_POLICY, refused ? GATE_REFUSED : GATE_PASSED,
            !refused ? ""
            : off    ? "channel"
                     : "category");
    }
    bool expired = c->expires_at_us != 0 && c->expires_at_us <= c->now_us;
    if (last != GATE_STEP_POLICY && c->expires_at_us != 0) {
        add(trace, GATE_STEP_EXPIRY, expired ? GATE_REFUSED : GATE_PASSED, "");
    }
    if (last == GATE_STEP_POLICY || expired) {
        return;
    }
    bool redirected = gate_route(t, c->person) == GUARDIAN_REDIRECT;
    if (last == GATE_STEP_SUPPRESSION) {
        add(trace, GATE_STEP_SUPPRESSION, GATE_REFUSED, listing_name(c->listing));
        return;
    }
    if (c->has_address && !redirected) {
        bool waived = c->suppression != SUPPRESSION_NONE;
        add(trace, GATE_STEP_SUPPRESSION, waived ? GATE_WAIVED : GATE_PASSED,
            waived ? listing_name(c->listing) : "");
    }
    add_people(trace, c);
    bool asked = last != GATE_STEP_OPT_OUT && last != GATE_STEP_CONSENT &&
                 last != GATE_STEP_PREFERENCE && !redirected;
    if (asked) {
        add(trace, GATE_STEP_ADDRESS, c->has_address ? GATE_PASSED : GATE_REFUSED, "");
    }
}

// ---- limits and times ----

// When its turn is; 0: now.
static int64_t add_limits(Trace *trace, const GateCase *c, bool refused)
{
    static const char *const names[GATE_LIMITS] = {
        "tenant", "channel", "recipient", "recipient_channel"};
    GateTurn turns[GATE_LIMITS];
    gate_turns(c, turns);
    int last = -1;
    bool limited = false;
    bool waived = false;
    for (int i = 0; i < GATE_LIMITS; i++) {
        limited = limited || turns[i].limited;
        waived = waived || (!turns[i].counts && turns[i].turn_us > 0);
        bool later = turns[i].counts && turns[i].turn_us > 0 &&
                     (last < 0 || turns[i].turn_us > turns[last].turn_us);
        last = later ? i : last;
    }
    if (last >= 0) {
        add(trace, GATE_STEP_LIMITS, refused ? GATE_REFUSED : GATE_DEFERRED, names[last]);
    } else if (limited) {
        add(trace, GATE_STEP_LIMITS, waived ? GATE_WAIVED : GATE_PASSED, "");
    }
    return last >= 0 ? turns[last].turn_us : 0;
}

// As if nothing were urgent, to see what passes over them.
static QuietHours hours_of(const GateCase *c)
{
    GateCase calm = *c;
    calm.priority = PRIORITY_NORMAL;
    calm.category = CATEGORY_OPERATIONAL;
    return gate_quiet_hours(&calm);
}

static void add_quiet_hours(Trace *trace, const GateCase *c, int64_t at_us)
{
    QuietHours quiet = hours_of(c);
    if (quiet.start_minute == quiet.end_minute) {
        return;
    }
    char rule[32];
    (void)snprintf(
        rule, sizeof rule, "%c%02d%02d-%02d%02d", c->person->has_quiet_hours ? 'r' : 't',
        quiet.start_minute / 60 % 24, quiet.start_minute % 60, quiet.end_minute / 60 % 24,
        quiet.end_minute % 60);
    bool night = quiet_hours_end(quiet, gate_zone(c), at_us) > at_us;
    GateOutcome held = gate_is_urgent(c) ? GATE_WAIVED : GATE_DEFERRED;
    add(trace, GATE_STEP_QUIET_HOURS, night ? held : GATE_PASSED, rule);
}

static const char *frequency_rule(const GateCase *c)
{
    const GatePreference *found = c->person == NULL ? NULL : gate_preference(c, c->person);
    return found == NULL || !digest_plan_gathers(&found->plan)
               ? ""
               : frequency_name(found->plan.frequency);
}

static void add_times(
    Trace *trace, const GateCase *c, const GateDecision *decision, int64_t turn_us)
{
    int64_t at_us = c->now_us;
    if (c->scheduled_for_us > at_us) {
        add(trace, GATE_STEP_SCHEDULE, GATE_DEFERRED, "");
        at_us = c->scheduled_for_us;
    }
    at_us = turn_us > at_us ? turn_us : at_us;
    const char *digest = frequency_rule(c);
    if (decision->verdict == GATE_GATHER) {
        add(trace, GATE_STEP_DIGEST, GATE_GATHERED, digest);
        return;
    }
    if (digest[0] != '\0') {
        add(trace, GATE_STEP_DIGEST, GATE_WAIVED, digest);
    }
    add_quiet_hours(trace, c, at_us);
    if (decision->verdict == GATE_SUPPRESS) { // expired is all that times can refuse
        add(trace, GATE_STEP_EXPIRY, GATE_REFUSED, "later");
    }
}

void gate_trace(const GateCase *c, const GateDecision *decision, char out[GATE_TRACE_SIZE])
{
    Trace trace = {.out = out};
    out[0] = '\0';
    if (c->routed == GUARDIAN_COPY || c->routed == GUARDIAN_REDIRECT) {
        add(&trace, GATE_STEP_GUARDIAN, GATE_PASSED, guardian_routing_name(c->routed));
    }
    GateReason refusal = gate_refuse(c);
    bool refused = decision->verdict == GATE_SUPPRESS;
    add_refusals(&trace, c, refusal);
    if (refusal != GATE_NO_REASON) {
        return;
    }
    if (refused && decision->reason == GATE_NO_ADDRESS) { // a minor without a guardian
        add(&trace, GATE_STEP_ADDRESS, GATE_REFUSED, "guardian");
        return;
    }
    bool over = refused && decision->reason == GATE_RATE_LIMIT;
    int64_t turn_us = add_limits(&trace, c, over);
    if (!over) {
        add_times(&trace, c, decision, turn_us);
    }
}

void gate_trace_erased(char trace[GATE_TRACE_SIZE])
{
    const char *address = strstr(trace, "A+"); // rules are in small letters
    Trace cut = {.out = trace, .used = address == NULL ? strlen(trace) : (size_t)(address - trace)};
    add(&cut, GATE_STEP_ADDRESS, GATE_REFUSED, "erased");
}

// ---- reading one ----

static GateStep step_of_letter(char letter)
{
    const char *at = letter == ' ' || letter == '\0' ? NULL : strchr(LETTERS, letter);
    return at == NULL ? GATE_STEP_NONE : (GateStep)(at - LETTERS);
}

// "(...)" at the front of rest, which moves behind it.
static Str take_rule(Str *rest)
{
    Str rule = STR_EMPTY;
    if (rest->len == 0 || rest->ptr[0] != '(') {
        return rule;
    }
    const char *end = memchr(rest->ptr, ')', rest->len);
    size_t len = end == NULL ? rest->len : (size_t)(end - rest->ptr) + 1;
    rule = str_of(rest->ptr + 1, len - 1 - (end != NULL));
    *rest = str_of(rest->ptr + len, rest->len - len);
    return rule;
}

size_t gate_trace_read(Str trace, GateTraceStep ret[GATE_TRACE_STEPS_MAX])
{
    size_t count = 0;
    while (trace.len >= 2 && count < GATE_TRACE_STEPS_MAX) {
        GateTraceStep step = {step_of_letter(trace.ptr[0]), (GateOutcome)trace.ptr[1], STR_EMPTY};
        trace = str_of(trace.ptr + 2, trace.len - 2);
        step.rule = take_rule(&trace);
        if (step.step != GATE_STEP_NONE && strchr("+->&!", (int)step.outcome) != NULL &&
            step.outcome != 0) {
            ret[count++] = step;
        }
    }
    return count;
}
