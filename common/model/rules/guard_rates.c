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
    Map *by_tenant;
};

GuardRates *guard_rates_new(void)
{
    GuardRates *rates = xcalloc(1, sizeof *rates);
    rates->by_tenant = map_new(free);
    return rates;
}

void guard_rates_free(GuardRates *rates)
{
    if (rates != NULL) {
        map_free(rates->by_tenant);
        free(rates);
    }
}

void guard_rates_clear(GuardRates *rates)
{
    map_free(rates->by_tenant);
    rates->by_tenant = map_new(free);
}

void guard_rates_note(
    GuardRates *rates, Str tenant, GuardOutcome what, uint64_t count, int64_t at_us)
{
    int64_t number = at_us / STEP_US;
    if (at_us < 0) {
        return;
    }
    Ring *ring = map_get(rates->by_tenant, tenant);
    if (ring == NULL) {
        ring = xcalloc(1, sizeof *ring);
        map_put(rates->by_tenant, tenant, ring);
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
    const Ring *ring, int64_t from_us, int64_t since_us, int64_t now_us,
    uint64_t ret[GUARD_OUTCOMES])
{
    int64_t first = from_us / STEP_US;
    int64_t resumed = since_us / STEP_US;
    for (int i = 0; i < GUARD_OUTCOMES; i++) {
        ret[i] = 0;
    }
    for (size_t i = 0; i < STEPS; i++) {
        const Step *step = &ring->steps[i];
        bool counts = step->number >= first && step->number <= now_us / STEP_US &&
                      (since_us == 0 || step->number > resumed);
        for (int k = 0; counts && k < GUARD_OUTCOMES; k++) {
            ret[k] += step->counts[k];
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
    const GuardRates *rates, Str tenant, const GuardLimits *limits, int64_t since_us,
    int64_t now_us)
{
    static const int64_t spans[] = {HOUR_US, DAY_US};
    const Ring *ring = map_get(rates->by_tenant, tenant);
    GuardVerdict gravest = {.level = GUARD_FINE};
    for (size_t i = 0; ring != NULL && i < sizeof spans / sizeof *spans; i++) {
        uint64_t counts[GUARD_OUTCOMES];
        count(ring, now_us - spans[i], since_us, now_us, counts);
        for (GuardOutcome of = GUARD_BOUNCED; of < GUARD_OUTCOMES; of++) {
            GuardLevel level = level_of(counts[GUARD_SENT], counts[of], limits, of);
            if (level > gravest.level) {
                gravest = (GuardVerdict){level, of, spans[i], counts[GUARD_SENT], counts[of]};
            }
        }
    }
    return gravest;
}

bool guard_rates_next(const GuardRates *rates, size_t *cursor, Str *ret_tenant)
{
    void *value;
    return map_next(rates->by_tenant, cursor, ret_tenant, &value);
}
