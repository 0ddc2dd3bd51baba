// SPDX-License-Identifier: Apache-2.0
// Quota: what limits follow for now from what a vendor says that the account may send. The pace of
// a second holds always. That of a day begins when four fifths are used: what is left is then
// spread over a day, so that a campaign may burst and the account is not shut for hours. It is
// asked each QUOTA_POLL_S, or QUOTA_AGAIN_S after a question without an answer. Pure.
#pragma once

#include <stdint.h>

#include "common/vendor/vendor_api.h"

enum { QUOTA_FREE_PERCENT = 80, QUOTA_POLL_S = 300, QUOTA_AGAIN_S = 60 };

// 0: no limit.
void quota_limits(const VendorQuota *quota, int64_t *ret_per_s, int64_t *ret_per_day);
// The stricter of two limits; 0: none.
int64_t quota_stricter(int64_t one, int64_t other);
