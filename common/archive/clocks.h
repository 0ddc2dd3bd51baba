// SPDX-License-Identifier: Apache-2.0
// Whether the clocks may be trusted with a deletion. Pure.
//
// Law: what ends by age is deleted only while this host's clock agrees with Postgres's and with the
// newest message that segments hold. One wrong clock then destroys nothing.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"

enum {
    CLOCKS_APART_S = 3 * 3600,
    // A segment waits for at most 7 days (STENTOR_SEGMENT_S). The other 7 are for quiet days, and
    // for a storage that is away.
    CLOCKS_QUIET_S = 14 * 86400,
};

typedef struct ClockReadings {
    int64_t host_us;
    int64_t postgres_us;
    int64_t stored_us;  // when the message was stored that is the newest in segments; 0: none is
    const char *stream; // which it is of
} ClockReadings;

// false: PERMANENT, which names the clocks and the remedy.
bool clocks_agree(const ClockReadings *readings, Error *err);

// Columns: postgres_us, stored_us, stream. Only streams that are archived now: the position of one
// that is not any more stands still.
extern const char clocks_sql[];
