// SPDX-License-Identifier: Apache-2.0
// Is an address suppressed, while its entry may have been made under another hash key than the
// current one? Only the address itself tells: a hash of one key says nothing of that of another.
// Pure.
#pragma once

#include "common/codec/master_key.h"
#include "common/model/suppressions.h"

// Asked after suppressions_classify has found nothing under the hash that is at hand. With one hash
// key (nearly always) it asks nothing more and costs nothing; with several it looks under each, the
// tenant's list and the platform's.
SuppressionReason suppressed_under_any(
    const Suppressions *known, const HashKeys *keys, Str tenant, Channel channel, Category category,
    Str address, int64_t now_us);
