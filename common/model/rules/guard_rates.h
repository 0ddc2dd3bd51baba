// SPDX-License-Identifier: Apache-2.0
// Guard rails: how many e-mails of a scope (a tenant, its From domain, the recipients' provider)
// bounced for good or were complained about, over the last hour and the last day, in steps of five
// minutes; and whether that is too many to go on with marketing. The scope is a text of the
// caller's. Time is an argument; nothing but memory: 7 KB for each scope.
#pragma once

#include "common/base/str.h"

typedef enum GuardOutcome {
    GUARD_SENT,
    GUARD_BOUNCED,
    GUARD_COMPLAINED,
    GUARD_OUTCOMES
} GuardOutcome;

// Parts in a thousand; 0: never. Of sends in the span, which must be min_sends at least.
typedef struct GuardLimits {
    uint32_t warn[GUARD_OUTCOMES];
    uint32_t pause[GUARD_OUTCOMES];
    uint32_t min_sends;
} GuardLimits;

typedef enum GuardLevel { GUARD_FINE, GUARD_WARN, GUARD_PAUSE } GuardLevel;

typedef struct GuardVerdict {
    GuardLevel level;
    GuardOutcome of; // what reaches the limit; of GUARD_FINE nothing
    int64_t span_us;
    uint64_t sent, bad;
} GuardVerdict;

typedef struct GuardRates GuardRates;

GuardRates *guard_rates_new(void);
void guard_rates_free(GuardRates *rates); // NULL-safe
void guard_rates_clear(GuardRates *rates);
void guard_rates_note(
    GuardRates *rates, Str scope, GuardOutcome what, uint64_t count, int64_t at_us);
// What is judged: a scope, less parts of it that are scopes of their own.
typedef struct GuardQuestion {
    Str scope;
    const Str *without;
    size_t without_count;
    int64_t since_us; // nothing before it counts (an operator has resumed then); 0: everything does
    int64_t now_us;
} GuardQuestion;

// The gravest of both spans and both outcomes.
GuardVerdict guard_rates_judge(
    const GuardRates *rates, const GuardQuestion *question, const GuardLimits *limits);
// Walks over all scopes; do not change the rates meanwhile.
bool guard_rates_next(const GuardRates *rates, size_t *cursor, Str *ret_scope);
