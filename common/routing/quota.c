// SPDX-License-Identifier: Apache-2.0
#include "common/routing/quota.h"

static const double LIMIT_MAX = 1e9;

static int64_t whole_of(double limit)
{
    return limit < 1 ? 1 : (int64_t)(limit < LIMIT_MAX ? limit : LIMIT_MAX);
}

void quota_limits(const VendorQuota *quota, int64_t *ret_per_s, int64_t *ret_per_day)
{
    *ret_per_s = quota->per_s > 0 ? whole_of(quota->per_s) : 0;
    bool is_short =
        quota->per_day > 0 && quota->used_of_day * 100 >= quota->per_day * QUOTA_FREE_PERCENT;
    *ret_per_day = is_short ? whole_of(quota->per_day - quota->used_of_day) : 0;
}

int64_t quota_stricter(int64_t one, int64_t other)
{
    if (one == 0 || other == 0) {
        return one + other;
    }
    return one < other ? one : other;
}
