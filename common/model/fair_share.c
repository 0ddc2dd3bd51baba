// SPDX-License-Identifier: Apache-2.0
#include "common/model/fair_share.h"

#include <assert.h>
#include <stdlib.h>

#include "common/base/arena.h"
#include "common/base/map.h"
#include "common/model/pace.h"

struct FairShare {
    int64_t per_s;
    Map *tenants; // Pace[PRIORITY_LOW], of the lanes above the lowest
};

FairShare *fair_share_new(int64_t per_s)
{
    assert(per_s >= 0 && per_s <= FAIR_SHARE_PER_S_MAX);
    FairShare *share = xcalloc(1, sizeof *share);
    share->per_s = per_s;
    share->tenants = map_new(free);
    return share;
}

void fair_share_free(FairShare *share)
{
    if (share != NULL) {
        map_free(share->tenants);
        free(share);
    }
}

static Pace *new_paces(const FairShare *share, int64_t now_us)
{
    Pace *paces = xcalloc(PRIORITY_LOW, sizeof *paces);
    int64_t saved = (share->per_s * FAIR_SHARE_SAVED_MS + 999) / 1000;
    for (int lane = 0; lane < PRIORITY_LOW; lane++) {
        pace_init(&paces[lane], share->per_s, saved, now_us);
        pace_give_back(&paces[lane], saved);
    }
    return paces;
}

static Pace *paces_of(FairShare *share, Str tenant, int64_t now_us)
{
    Pace *paces = map_get(share->tenants, tenant);
    if (paces != NULL) {
        return paces;
    }
    if (map_count(share->tenants) == FAIR_SHARE_TENANTS_MAX) {
        map_free(share->tenants);
        share->tenants = map_new(free);
    }
    paces = new_paces(share, now_us);
    map_put(share->tenants, tenant, paces);
    return paces;
}

Priority fair_share_lane(FairShare *share, Str tenant, Priority wanted, int64_t now_us)
{
    assert(wanted > PRIORITY_NONE && wanted < PRIORITY_COUNT);
    if (share->per_s == 0 || wanted == PRIORITY_LOW) {
        return wanted;
    }
    Pace *paces = paces_of(share, tenant, now_us);
    Priority lane = wanted;
    while (lane < PRIORITY_LOW && !pace_take(&paces[lane], 1, now_us, NULL)) {
        lane++; // a step, so that a burst of one-time codes does not fall behind a campaign at once
    }
    return lane;
}
