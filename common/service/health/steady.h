// SPDX-License-Identifier: Apache-2.0
// Steady: a service that was ready and is not any more becomes ready again only when it has been
// well for a while without a break. So a dependency that comes and goes does not make readiness
// come and go with it. Down at once, and the first time up at once. Pure; time is an argument.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { STEADY_MS = 1000 };

typedef struct Steady {
    bool was_ready; // ever
    bool ready;     // as last reported
    bool well;      // as last seen
    int64_t well_since_ms;
} Steady;

bool steady_update(Steady *steady, bool well, int64_t now_ms); // returns ready
