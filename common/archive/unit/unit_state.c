// SPDX-License-Identifier: Apache-2.0
#include "common/archive/unit/unit_state.h"

#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/states/states.h"

static const int64_t day_us = INT64_C(86400) * 1000000;

// clang-format off
static const char *const state_names[UNIT_STATE_COUNT] = {
    [UNIT_OPEN]      = "open",
    [UNIT_SEALED]    = "sealed",
    [UNIT_COUNTED]   = "counted",
    [UNIT_WRITTEN]   = "written",
    [UNIT_VERIFIED]  = "verified",
    [UNIT_COMMITTED] = "committed",
    [UNIT_REMOVING]  = "removing",
    [UNIT_REMOVED]   = "removed",
    [UNIT_RESTORED]  = "restored",
    [UNIT_EXPIRED]   = "expired",
};

static const uint32_t allowed[UNIT_STATE_COUNT] = {
    [UNIT_OPEN]      = STATE_BIT(UNIT_SEALED),
    [UNIT_SEALED]    = STATE_BIT(UNIT_COUNTED),
    [UNIT_COUNTED]   = STATE_BIT(UNIT_WRITTEN),
    [UNIT_WRITTEN]   = STATE_BIT(UNIT_VERIFIED),
    [UNIT_VERIFIED]  = STATE_BIT(UNIT_COMMITTED),
    [UNIT_COMMITTED] = STATE_BIT(UNIT_REMOVING),
    [UNIT_REMOVING]  = STATE_BIT(UNIT_REMOVED),
    [UNIT_REMOVED]   = STATE_BIT(UNIT_RESTORED) | STATE_BIT(UNIT_EXPIRED),
    [UNIT_RESTORED]  = STATE_BIT(UNIT_REMOVED),
};

static const char *const step_names[UNIT_STEP_COUNT] = {
    [UNIT_WAIT]   = "waiting",
    [UNIT_SEAL]   = "sealing",
    [UNIT_COUNT]  = "counting",
    [UNIT_WRITE]  = "writing",
    [UNIT_VERIFY] = "verifying",
    [UNIT_COMMIT] = "committing",
    [UNIT_REMOVE] = "removing",
    [UNIT_DROP]   = "dropping",
    [UNIT_ATTACH] = "restoring",
    [UNIT_DETACH] = "ending the restore of",
    [UNIT_COOL]   = "cooling",
    [UNIT_EXPIRE] = "expiring",
    [UNIT_DELETE] = "deleting",
    [UNIT_CONFIRM] = "confirming",
};
// clang-format on

static const States states = {"unit", state_names, allowed, UNIT_STATE_COUNT};

const char *unit_state_name(UnitState state)
{
    return state_names[state];
}

bool unit_state_from_name(Str name, UnitState *ret)
{
    for (int i = 0; i < UNIT_STATE_COUNT; i++) {
        if (str_eq(name, str_from(state_names[i]))) {
            *ret = (UnitState)i;
            return true;
        }
    }
    return false;
}

bool unit_state_allows(UnitState from, UnitState to)
{
    return states_allow(&states, from, to);
}

const char *unit_step_name(UnitStep step)
{
    return step_names[step];
}

int64_t unit_span_after(int64_t at_us, RetentionSpan span)
{
    int64_t start_us = 0;
    int64_t end_us = 0;
    clock_month(at_us, &start_us, &end_us);
    int64_t within_us = at_us - start_us;
    for (int i = 0; i < span.months; i++) {
        clock_month(end_us, &start_us, &end_us);
    }
    int64_t moved_us = start_us + within_us;
    if (moved_us >= end_us) { // the 31st of a month with 30 days
        moved_us = end_us - day_us + within_us % day_us;
    }
    return moved_us + span.days * day_us;
}

static bool is_hot(const UnitFacts *facts, const UnitRules *rules)
{
    int64_t until_us = rules->hot_us >= 0 ? facts->ends_us + rules->hot_us
                                          : unit_span_after(facts->ends_us, rules->spans.hot);
    return rules->now_us < until_us;
}

// An event that was stored before the period's end may be folded late: not before its row is there.
static bool is_folded(const UnitFacts *facts)
{
    return facts->folded_us >= facts->ends_us + INT64_C(1000000) * UNIT_FOLD_MARGIN_S;
}

static bool is_over(const UnitFacts *facts, const UnitRules *rules, RetentionSpan span)
{
    return rules->now_us >= unit_span_after(facts->ends_us, span);
}

static UnitStep next_of_removed(const UnitFacts *facts, const UnitRules *rules)
{
    if (facts->restore_us > rules->now_us) {
        return UNIT_ATTACH;
    }
    if (is_over(facts, rules, rules->spans.kept)) {
        return UNIT_EXPIRE;
    }
    if (facts->warm && is_over(facts, rules, rules->spans.warm)) {
        return UNIT_COOL;
    }
    return facts->deletable ? UNIT_DELETE : UNIT_WAIT;
}

// Whoever asked for the expiry waits for nothing. Replaced objects have their own time.
static UnitStep next_of_expired(const UnitFacts *facts, const UnitRules *rules)
{
    int64_t since_us = rules->now_us - facts->state_us;
    if (facts->deletable && (rules->at_once || since_us >= INT64_C(1000000) * UNIT_EXPIRED_S)) {
        return UNIT_DELETE;
    }
    return facts->gone ? UNIT_CONFIRM : UNIT_WAIT;
}

UnitStep unit_next(const UnitFacts *facts, const UnitRules *rules)
{
    switch (facts->state) {
    case UNIT_OPEN:
        return is_hot(facts, rules) || !is_folded(facts) ? UNIT_WAIT : UNIT_SEAL;
    case UNIT_SEALED:
        return UNIT_COUNT;
    case UNIT_COUNTED:
        return UNIT_WRITE;
    case UNIT_WRITTEN:
        return UNIT_VERIFY;
    case UNIT_VERIFIED:
        return UNIT_COMMIT;
    case UNIT_COMMITTED:
        return rules->quiet ? UNIT_REMOVE : UNIT_WAIT;
    case UNIT_REMOVING:
        return rules->now_us >= facts->removed_us + rules->grace_us ? UNIT_DROP : UNIT_WAIT;
    case UNIT_REMOVED:
        return next_of_removed(facts, rules);
    case UNIT_RESTORED:
        return facts->restore_us <= rules->now_us ? UNIT_DETACH : UNIT_WAIT;
    case UNIT_EXPIRED:
        return next_of_expired(facts, rules);
    case UNIT_STATE_COUNT:
        break;
    }
    return UNIT_WAIT;
}

void unit_period(int64_t starts_us, int64_t ends_us, char out[UNIT_PERIOD_SIZE])
{
    char text[CLOCK_RFC3339_SIZE];
    clock_format(starts_us, text);
    bool day = ends_us - starts_us <= day_us;
    (void)snprintf(out, UNIT_PERIOD_SIZE, "%.*s", day ? 10 : 7, text);
}
