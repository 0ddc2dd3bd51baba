// SPDX-License-Identifier: Apache-2.0
#include "common/model/rules/guard_rates.h"

#include <stdlib.h>

#include "common/base/arena.h"
#include "common/base/map.h"

enum { STEPS = 289 }; // a day, and the step that is under way

#define STEP_US INT64_C(300000000)
#define HOUR_US INT64_C(3600000000)
#define DAY_US (24 * HOUR_US)

typedef struct Step {
    int64_t number; // of five minutes since 1970
    uint32_t counts[GUARD_OUTCOMES];
} Step;

typedef struct Ring {
    Step steps[STEPS];
} Ring;

struct GuardRates {
    Map *by_scope;
};

GuardRates *guard_rates_new(void)
{
    GuardRates *rates = xcalloc(1, sizeof *rates);
    rates->by_scope = map_new(free);
    return rates;
}

void guard_rates_free(GuardRates *rates)
{
    if (rates != NULL) {
        map_free(rates->by_scope);
        free(rates);
    }
}

void guard_rates_clear(GuardRates *rates)
{
    map_free(rates->by_scope);
    rates->by_scope = map_new(free);
}

void guard_rates_note(
    GuardRates *rates, Str scope, GuardOutcome what, uint64_t count, int64_t at_us)
{
    int64_t number = at_us / STEP_US;
    if (at_us < 0) {
        return;
    }
    Ring *ring = map_get(rates->by_scope, scope);
    if (ring == NULL) {
        ring = xcalloc(1, sizeof *ring);
        map_put(rates->by_scope, scope, ring);
    }
    Step *step = &ring->steps[number % STEPS];
    if (step->number > number) {
        return; // older than a day
    }
    if (step->number < number) {
        *step = (Step){.number = number};
    }
    uint64_t sum = step->counts[what] + count;
    step->counts[what] = sum > UINT32_MAX ? UINT32_MAX : (uint32_t)sum;
}

// By whole steps: the one in which the span begins counts, that of a resumption does not.
static void count(
    const Ring *ring, const GuardQuestion *question, int64_t span_us, uint64_t ret[GUARD_OUTCOMES])
{
    int64_t first = (question->now_us - span_us) / STEP_US;
    int64_t resumed = question->since_us / STEP_US;
    for (int i = 0; i < GUARD_OUTCOMES; i++) {
        ret[i] = 0;
    }
    for (size_t i = 0; i < STEPS; i++) {
        const Step *step = &ring->steps[i];
        bool counts = step->number >= first && step->number <= question->now_us / STEP_US &&
                      (question->since_us == 0 || step->number > resumed);
        for (int k = 0; counts && k < GUARD_OUTCOMES; k++) {
            ret[k] += step->counts[k];
        }
    }
}

static void take_away(
    const GuardRates *rates, const GuardQuestion *question, int64_t span_us,
    uint64_t counts[GUARD_OUTCOMES])
{
    for (size_t i = 0; i < question->without_count; i++) {
        const Ring *part = map_get(rates->by_scope, question->without[i]);
        uint64_t less[GUARD_OUTCOMES] = {0};
        if (part != NULL) {
            count(part, question, span_us, less);
        }
        for (int k = 0; k < GUARD_OUTCOMES; k++) {
            counts[k] -= less[k] < counts[k] ? less[k] : counts[k];
        }
    }
}

static GuardLevel level_of(uint64_t sent, uint64_t bad, const GuardLimits *limits, GuardOutcome of)
{
    if (sent < limits->min_sends || sent == 0) {
        return GUARD_FINE;
    }
    uint64_t parts = bad * 1000;
    if (limits->pause[of] > 0 && parts >= limits->pause[of] * sent) {
        return GUARD_PAUSE;
    }
    return limits->warn[of] > 0 && parts >= limits->warn[of] * sent ? GUARD_WARN : GUARD_FINE;
}

GuardVerdict guard_rates_judge(
    const GuardRates *rates, const GuardQuestion *question, const GuardLimits *limits)
{
    static const int64_t spans[] = {HOUR_US, DAY_US};
    const Ring *ring = map_get(rates->by_scope, question->scope);
    GuardVerdict gravest = {.level = GUARD_FINE};
    for (size_t i = 0; ring != NULL && i < sizeof spans / sizeof *spans; i++) {
        uint64_t counts[GUARD_OUTCOMES];
        count(ring, question, spans[i], counts);
        take_away(rates, question, spans[i], counts);
        for (GuardOutcome of = GUARD_BOUNCED; of < GUARD_OUTCOMES; of++) {
            GuardLevel level = level_of(counts[GUARD_SENT], counts[of], limits, of);
            if (level > gravest.level) {
                gravest = (GuardVerdict){level, of, spans[i], counts[GUARD_SENT], counts[of]};
            }
        }
    }
    return gravest;
}

bool guard_rates_next(const GuardRates *rates, size_t *cursor, Str *ret_scope)
{
    void *value;
    return map_next(rates->by_scope, cursor, ret_scope, &value);
}
