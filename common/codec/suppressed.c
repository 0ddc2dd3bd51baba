// SPDX-License-Identifier: Apache-2.0
#include "common/codec/suppressed.h"

#include "common/codec/hash.h"

SuppressionReason suppressed_under_any(
    const Suppressions *known, const HashKeys *keys, Str tenant, Channel channel, Category category,
    Str address, int64_t now_us)
{
    SuppressionReason found = SUPPRESSION_NONE;
    if (keys->count < 2 || address.len == 0) {
        return found;
    }
    for (size_t i = 0; i < keys->count && found == SUPPRESSION_NONE; i++) {
        uint8_t own[ADDRESS_HASH_LEN];
        uint8_t platform[ADDRESS_HASH_LEN];
        address_hash(keys->keys[i], tenant, channel, address, own);
        address_hash(keys->keys[i], STR("platform"), channel, address, platform);
        found = suppressions_classify(known, tenant, channel, category, own, platform, now_us);
    }
    return found;
}
