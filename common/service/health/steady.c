// SPDX-License-Identifier: Apache-2.0
#include "common/service/health/steady.h"

bool steady_update(Steady *steady, bool well, int64_t now_ms)
{
    if (well && !steady->well) {
        steady->well_since_ms = now_ms;
    }
    steady->well = well;
    bool long_enough = !steady->was_ready || now_ms - steady->well_since_ms >= STEADY_MS;
    steady->ready = well && (steady->ready || long_enough);
    steady->was_ready = steady->was_ready || steady->ready;
    return steady->ready;
}
