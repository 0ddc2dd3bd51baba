// SPDX-License-Identifier: Apache-2.0
#include "common/model/rules/fair_share.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"
#include "common/base/map.h"
#include "common/model/rules/pace.h"

struct FairShare {
    int64_t per_s;
    // Pace[PRIORITY_LOW], of the lanes above the lowest. Who is seen is in `recent`; when that is
    // full it becomes `before`, and who was in neither since is forgotten.
    Map *recent;
    Map *before;
};

FairShare *fair_share_new(int64_t per_s)
{
    assert(per_s >= 0 && per_s <= FAIR_SHARE_PER_S_MAX);
    FairShare *share = xcalloc(1, sizeof *share);
    share->per_s = per_s;
    share->recent = map_new(free);
    share->before = map_new(free);
    return share;
}

void fair_share_free(FairShare *share)
{
    if (share != NULL) {
        map_free(share->recent);
        map_free(share->before);
        free(share);
    }
}

static Pace *paces_of(FairShare *share, Str tenant, int64_t now_us)
{
    Pace *paces = map_get(share->recent, tenant);
    if (paces != NULL) {
        return paces;
    }
    paces = xcalloc(PRIORITY_LOW, sizeof *paces);
    const Pace *known = map_get(share->before, tenant);
    if (known != NULL) {
        memcpy(paces, known, PRIORITY_LOW * sizeof *paces);
    } else {
        int64_t saved = (share->per_s * FAIR_SHARE_SAVED_MS + 999) / 1000;
        for (int lane = 0; lane < PRIORITY_LOW; lane++) {
            pace_init(&paces[lane], share->per_s, saved, now_us);
            pace_give_back(&paces[lane], saved);
        }
    }
    if (map_count(share->recent) == FAIR_SHARE_TENANTS_MAX) {
        map_free(share->before); // with the silent ones
        share->before = share->recent;
        share->recent = map_new(free);
    }
    map_put(share->recent, tenant, paces);
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
