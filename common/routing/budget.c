// SPDX-License-Identifier: Apache-2.0
#include "common/routing/budget.h"

#include <math.h>

static const int64_t SECOND_US = 1000000;
static const double DEMAND_WEIGHT = 0.2; // of the last second: an average over about 5 s

void budget_init(Budget *budget, int64_t per_s, int64_t per_day)
{
    int64_t horizon_s = per_s > 0 ? BUDGET_HORIZON_S : BUDGET_DAY_HORIZON_S;
    *budget = (Budget){.horizon_us = horizon_s * SECOND_US};
    budget->per_horizon = per_s > 0 ? per_s * horizon_s * SECOND_US
                                    : per_day * horizon_s * SECOND_US / 86400; // in millionths
}

double budget_span_s(const Budget *budget, uint32_t count)
{
    return (double)count * (double)budget->horizon_us / (double)budget->per_horizon;
}

// ---- demand ----

static void turn_second(Budget *budget, int64_t now_us)
{
    int64_t second = now_us / SECOND_US;
    int64_t passed = second - budget->demand_second;
    if (passed == 0) {
        return;
    }
    if (budget->demand_second > 0) {
        double weight = passed > 20 ? 1 : 1 - pow(1 - DEMAND_WEIGHT, (double)passed);
        double last = passed == 1 ? budget->demand_count : 0;
        budget->demand_per_s = budget->demand_per_s * (1 - weight) + last * weight;
    }
    budget->demand_second = second;
    budget->demand_count = 0;
}

// What the next horizon will want. What waits counts whole: a burst does not wait for its average.
static double demand_of(const Budget *budget, int64_t now_us)
{
    double running = budget->demand_count;
    double per_s = running > budget->demand_per_s ? running : budget->demand_per_s;
    double wanted = ceil(per_s * (double)budget->horizon_us / (double)SECOND_US);
    bool waits = budget->waiting > 0 && now_us - budget->waiting_us < SECOND_US;
    return waits && budget->waiting > wanted ? budget->waiting : wanted;
}

// ---- leases ----

static uint32_t left_of(const Budget *budget, int64_t now_us)
{
    int64_t grace_us = BUDGET_GRACE_MS * INT64_C(1000);
    int64_t passed = budget->interval_us > 0 && now_us - grace_us > budget->begin_us
                         ? (now_us - grace_us - budget->begin_us) / budget->interval_us
                         : 0;
    int64_t first = passed > budget->next ? passed : budget->next;
    return first >= budget->count ? 0 : budget->count - (uint32_t)first;
}

static void begin_later(Budget *budget, int64_t now_us)
{
    if (left_of(budget, now_us) == 0 && budget->later_count > 0) {
        budget->begin_us = budget->later_begin_us;
        budget->interval_us = budget->later_interval_us;
        budget->count = budget->later_count;
        budget->next = budget->used_common = budget->used_urgent = 0;
        budget->later_count = 0;
    }
}

uint32_t budget_wants(const Budget *budget, uint32_t replicas, int64_t now_us)
{
    bool asked =
        budget->asked_us > 0 && now_us - budget->asked_us < BUDGET_LEASE_DEAD_MS * INT64_C(1000);
    uint32_t left = left_of(budget, now_us);
    bool enough = left * 100 > budget->count * BUDGET_LOW_PERCENT;
    double wanted = demand_of(budget, now_us);
    bool idle = now_us - budget->waiting_us >= 2 * SECOND_US; // no mail has asked
    if (asked || now_us < budget->not_before_us || budget->later_count > 0 || enough || idle) {
        return 0;
    }
    double most = floor(
        (double)budget->per_horizon / (double)SECOND_US / (2.0 * (replicas > 0 ? replicas : 1)));
    wanted = wanted > most ? most : wanted;
    return wanted < 1 ? 1 : (uint32_t)wanted;
}

void budget_asked(Budget *budget, int64_t now_us)
{
    budget->asked_us = now_us;
}

void budget_granted(
    Budget *budget, uint32_t count, int64_t begins_in_us, int64_t span_us, int64_t now_us)
{
    budget->asked_us = 0;
    budget->later_begin_us = now_us + (begins_in_us > 0 ? begins_in_us : 0);
    budget->later_interval_us = span_us / (count > 0 ? count : 1);
    budget->later_count = count;
    begin_later(budget, now_us);
}

void budget_refused(Budget *budget, int64_t now_us)
{
    int64_t interval_us = (int64_t)(budget_span_s(budget, 1) * (double)SECOND_US);
    int64_t least_us = BUDGET_REFUSED_MIN_MS * INT64_C(1000);
    int64_t wait_us = interval_us < least_us ? least_us : interval_us;
    budget->asked_us = 0;
    budget->not_before_us = now_us + (wait_us < SECOND_US ? wait_us : SECOND_US);
}

// ---- taking ----

static bool is_urgent(Priority lane)
{
    return lane == PRIORITY_CRITICAL || lane == PRIORITY_HIGH;
}

// May another lane take one more of this lease, without that which is kept for the urgent ones?
static bool may_take(const Budget *budget, Priority lane, int64_t now_us)
{
    bool reserved = budget->urgent_used_us > 0 &&
                    now_us - budget->urgent_used_us < BUDGET_URGENT_MEMORY_S * SECOND_US;
    if (is_urgent(lane) || !reserved) {
        return true;
    }
    uint32_t kept = budget->count * BUDGET_URGENT_PERCENT / 100;
    return budget->used_common < budget->count - kept;
}

bool budget_take(
    Budget *budget, Priority lane, uint32_t waiting, int64_t now_us, int64_t *ret_at_us)
{
    turn_second(budget, now_us);
    budget->waiting = waiting;
    budget->waiting_us = now_us;
    if (is_urgent(lane)) {
        budget->urgent_used_us = now_us;
    }
    begin_later(budget, now_us);
    uint32_t left = left_of(budget, now_us);
    uint32_t first = budget->count - left;
    int64_t at_us = budget->begin_us + first * budget->interval_us;
    if (left == 0) {
        int64_t soon_us = now_us + BUDGET_REFUSED_MIN_MS * INT64_C(1000) / 5;
        *ret_at_us = budget->not_before_us > soon_us ? budget->not_before_us : soon_us;
        return false;
    }
    if (now_us < at_us || !may_take(budget, lane, now_us)) {
        *ret_at_us = now_us < at_us ? at_us : now_us + budget->interval_us;
        return false;
    }
    budget->next = first + 1;
    budget->demand_count++;
    budget->waiting -= budget->waiting > 0 ? 1 : 0;
    budget->used_common += is_urgent(lane) ? 0 : 1;
    budget->used_urgent += is_urgent(lane) ? 1 : 0;
    return true;
}

void budget_give_back(Budget *budget, Priority lane)
{
    budget->next -= budget->next > 0 ? 1 : 0;
    if (is_urgent(lane)) {
        budget->used_urgent -= budget->used_urgent > 0 ? 1 : 0;
    } else {
        budget->used_common -= budget->used_common > 0 ? 1 : 0;
    }
}

void budget_pause(Budget *budget, int64_t until_us)
{
    budget->next = budget->count;
    budget->later_count = 0;
    budget->not_before_us = until_us > budget->not_before_us ? until_us : budget->not_before_us;
}
