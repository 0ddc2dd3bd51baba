// SPDX-License-Identifier: Apache-2.0
// Bulkhead: mails of routes that vendors have just now, counted by lane, tenant and vendor. A slow
// vendor must not fill a lane whose consumer other vendors' mails share: one that has a quarter of
// the lane already has its further mails back unless their turn comes within BULKHEAD_PATIENCE_MS.
// A lane that only one tenant and vendor use holds nothing back. No I/O; time is an argument.
#pragma once

#include "common/model/enums.h"

enum {
    BULKHEAD_SHARE = 4,           // one part in so many of the lane
    BULKHEAD_PATIENCE_MS = 1000,  // a vendor that keeps up begins with a mail before that
    BULKHEAD_COMPANY_S = 600,     // others use the lane: seen within so long
    BULKHEAD_BACK_MIN_MS = 1000,  // when a mail that had no turn comes again,
    BULKHEAD_BACK_MAX_MS = 60000, // by chance
};

typedef struct Bulkhead Bulkhead;

Bulkhead *bulkhead_new(void);
void bulkhead_free(Bulkhead *bulkhead); // NULL-safe
// The vendor gets a mail; bulkhead_leave() when it has answered. room: of the lane, in mails.
// true: it is over the vendor's part, and others use the lane.
bool bulkhead_enter(
    Bulkhead *bulkhead, Priority lane, Str tenant, Str vendor, size_t room, int64_t now_us);
void bulkhead_leave(Bulkhead *bulkhead, Priority lane, Str tenant, Str vendor);
size_t bulkhead_count(const Bulkhead *bulkhead, Priority lane, Str tenant, Str vendor);
// After how long it comes again; random01 in [0, 1).
int64_t bulkhead_back_ms(double random01);
