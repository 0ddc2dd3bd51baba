// SPDX-License-Identifier: Apache-2.0
// Fair share: which lane a notification takes. Of each tenant and lane so many a second keep the
// lane that was asked for; what is beyond takes its tenant's share of the next lower one, and goes
// out on the lowest when there is none, behind all shares and never later than the machine can. So
// a flood waits behind its own sender's queue, and costs the others nothing. Pure: time is an
// argument. Not a limit: nothing is refused or held here (limits.h).
#pragma once

#include "common/base/str.h"
#include "common/model/enums.h"

typedef struct FairShare FairShare;

enum {
    FAIR_SHARE_SAVED_MS = 1000, // what a silent tenant may send at once, in time of its share
    // The last so many tenants are remembered, and no more than twice as many. Who is forgotten
    // begins with a full share, which is what a second of silence gives anyway.
    FAIR_SHARE_TENANTS_MAX = 10000,
    FAIR_SHARE_PER_S_MAX = 500000,
};

FairShare *fair_share_new(int64_t per_s); // 0: every notification keeps its lane
// Takes one place of the tenant's share. `wanted` is a lane; now_us is of any clock that does not
// go back. Gives `wanted` or a lower one.
Priority fair_share_lane(FairShare *share, Str tenant, Priority wanted, int64_t now_us);
void fair_share_free(FairShare *share); // NULL-safe
