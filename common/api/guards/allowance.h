// SPDX-License-Identifier: Apache-2.0
// Allowance: how many requests a tenant and a key may send in a minute, counted in the memory of
// this process, so that a loop of one caller does not take the others' time. Said in the fields of
// draft-ietf-httpapi-ratelimit-headers on every answer; beyond it 429. Not here: what a tenant may
// send (the gate's limits), and connections (common/http). Law: counts only who has shown a valid
// key, so its memory is bounded by the keys that there are; all windows begin at once.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/base/map.h"
#include "common/base/str.h"

enum { ALLOWANCE_WINDOW_S = 60, ALLOWANCE_NAME_MAX = 320 };

typedef struct Allowance {
    int64_t of_tenant, of_key; // requests in a window; 0: no bound
    int64_t ends_us;           // of the window
    Map *counts;               // "tenant", "tenant/key": int64_t
} Allowance;

typedef struct AllowanceLeft {
    int64_t of_tenant, of_key; // what is left; -1: no bound
    int64_t seconds;           // until there is more
    const char *violated;      // "tenant" or "key", whose is used up; NULL: taken
} AllowanceLeft;

void allowance_init(Allowance *allowance, int64_t of_tenant, int64_t of_key);
void allowance_done(Allowance *allowance);
// One request of the key. `operates`: it is an operator's, which no tenant's bound stops.
AllowanceLeft allowance_take(
    Allowance *allowance, Str tenant, Str key_id, bool operates, int64_t now_us);

struct ApiCall;
// The same for a call, with the fields. false: answered, 429.
bool allowance_admit(Allowance *allowance, struct ApiCall *call);
