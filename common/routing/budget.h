// SPDX-License-Identifier: Apache-2.0
// Budget: one replica's part of a limit that all replicas share. It leases tokens, n at once, each
// for a moment of its own: two replicas never have the same moments, so that all together keep the
// pace without asking for each mail. A token is used within a tenth of a second of its moment or
// lost: nothing is saved up, and what a stalled or killed replica had is lost with it. A part of
// each lease is kept for the urgent lanes while they are in use. Pure: time is an argument, of a
// clock that does not go back.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/model/enums.h"

enum {
    BUDGET_PER_S_MAX = 20000,     // beyond it the limit is divided among the replicas, not shared
    BUDGET_HORIZON_S = 1,         // T: how far ahead tokens of a limit per second are given
    BUDGET_DAY_HORIZON_S = 60,    // of a limit per day
    BUDGET_GRACE_MS = 100,        // how long after its moment a token may be used
    BUDGET_LOW_PERCENT = 30,      // of a lease are left: the next one is asked for
    BUDGET_URGENT_PERCENT = 20,   // of a lease are for critical and high alone ...
    BUDGET_URGENT_MEMORY_S = 10,  // ... as long as one of them was sent within so many seconds
    BUDGET_REFUSED_MIN_MS = 50,   // after a refused lease
    BUDGET_LEASE_DEAD_MS = 10000, // a lease that was asked for and has no answer is given up
};

typedef struct Budget {
    int64_t per_horizon; // L * T
    int64_t horizon_us;  // T
    // Own demand: sends of the second that runs, their smoothed rate (5 s), and what waited when a
    // token was last asked for.
    int64_t demand_second;
    uint32_t demand_count;
    double demand_per_s;
    uint32_t waiting;
    int64_t waiting_us;
    // The lease: token i of `count` is for begin_us + i * interval_us.
    int64_t begin_us, interval_us;
    uint32_t count;
    uint32_t next;        // of the first that is neither used nor passed
    uint32_t used_common; // of this lease by the other lanes
    uint32_t used_urgent;
    int64_t urgent_used_us; // when an urgent lane last asked; 0: never
    int64_t asked_us;       // a lease is asked for; 0: none is
    int64_t not_before_us;  // the next one is not asked for before it
    // The lease behind it, which begins later.
    int64_t later_begin_us, later_interval_us;
    uint32_t later_count;
} Budget;

// per_s and per_day: exactly one of them is > 0.
void budget_init(Budget *budget, int64_t per_s, int64_t per_day);
// How many tokens to ask for now with `replicas` of us; 0: none. Then budget_asked().
uint32_t budget_wants(const Budget *budget, uint32_t replicas, int64_t now_us);
// Seconds that `count` tokens take of the limit at its full pace: what a lease asks for.
double budget_span_s(const Budget *budget, uint32_t count);
void budget_asked(Budget *budget, int64_t now_us);
// The lease of `count` tokens begins in begins_in_us and lasts span_us.
void budget_granted(
    Budget *budget, uint32_t count, int64_t begins_in_us, int64_t span_us, int64_t now_us);
// Refused, or Postgres did not answer.
void budget_refused(Budget *budget, int64_t now_us);
// A token for a mail of the lane; `waiting`: how many wait here, this one included. false:
// *ret_at_us is when to ask again.
bool budget_take(
    Budget *budget, Priority lane, uint32_t waiting, int64_t now_us, int64_t *ret_at_us);
// The vendor throttles: what is left of the leases is lost, and none is asked for before until_us.
void budget_pause(Budget *budget, int64_t until_us);
void budget_give_back(Budget *budget, Priority lane); // at once, when the other key had none
