// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/tenants/key_expiry.h"

#include <math.h>

#include "common/base/clock.h"

#define SOON_US (INT64_C(14) * 86400 * 1000000)

static double read_soon(void *ctx)
{
    return (double)auth_ending(ctx, clock_now_us(), SOON_US).soon;
}

static double read_first(void *ctx)
{
    int64_t now_us = clock_now_us();
    int64_t first_us = auth_ending(ctx, now_us, SOON_US).first_us;
    return first_us == INT64_MAX ? (double)INFINITY : (double)(first_us - now_us) / 1e6;
}

void key_expiry_register(Metrics *metrics, Auth *auth)
{
    metrics_gauge_fn(
        metrics, "stentor_gateway_api_keys_expiring", "",
        "API keys that expire within 14 days and were made for longer", read_soon, auth);
    metrics_gauge_fn(
        metrics, "stentor_gateway_api_key_expiry_seconds", "",
        "Until the first of the API keys that were made for more than 14 days expires; +Inf: none "
        "does",
        read_first, auth);
}
