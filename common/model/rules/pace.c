// SPDX-License-Identifier: Apache-2.0
#include "common/model/rules/pace.h"

#include <assert.h>
#include <stddef.h>

enum { MILLION = 1000000 };

void pace_init(Pace *pace, int64_t per_s, int64_t burst, int64_t now_us)
{
    assert(per_s >= 0 && per_s <= PACE_PER_S_MAX && burst >= 1 && burst <= PACE_PER_S_MAX);
    *pace = (Pace){.per_s = per_s, .burst = burst, .at_us = now_us};
}

// At per_s a second one microsecond is worth per_s millionths. A bucket is full after
// burst / per_s seconds, so longer spans are cut before the product could overflow.
static void refill(Pace *pace, int64_t now_us)
{
    if (now_us <= pace->at_us) {
        return;
    }
    int64_t full = pace->burst * MILLION;
    int64_t to_full_us = full / pace->per_s + 1;
    int64_t passed_us = now_us - pace->at_us;
    pace->tokens += (passed_us < to_full_us ? passed_us : to_full_us) * pace->per_s;
    pace->tokens = pace->tokens < full ? pace->tokens : full;
    pace->at_us = now_us;
}

bool pace_take(Pace *pace, int64_t count, int64_t now_us, int64_t *ret_wait_us)
{
    assert(count >= 0 && count <= pace->burst);
    if (pace->per_s == 0) {
        return true;
    }
    refill(pace, now_us);
    int64_t missing = count * MILLION - pace->tokens;
    if (missing <= 0) {
        pace->tokens -= count * MILLION;
        return true;
    }
    if (ret_wait_us != NULL) {
        *ret_wait_us = (missing + pace->per_s - 1) / pace->per_s;
    }
    return false;
}

void pace_give_back(Pace *pace, int64_t count)
{
    if (pace->per_s > 0) {
        int64_t full = pace->burst * MILLION;
        pace->tokens += count * MILLION;
        pace->tokens = pace->tokens < full ? pace->tokens : full;
    }
}
