// SPDX-License-Identifier: Apache-2.0
#include "common/api/api_metrics.h"

static const char *const REFUSAL_LABELS[REFUSED_COUNT] = {
    [REFUSED_MALFORMED] = "reason=\"malformed\"",
    [REFUSED_INVALID] = "reason=\"invalid\"",
    [REFUSED_UNAUTHORIZED] = "reason=\"unauthorized\"",
    [REFUSED_SCOPE] = "reason=\"scope\"",
    [REFUSED_SUSPENDED] = "reason=\"suspended\"",
    [REFUSED_CONFLICT] = "reason=\"conflict\"",
    [REFUSED_UNAVAILABLE] = "reason=\"unavailable\"",
    [REFUSED_QUOTA] = "reason=\"quota\"",
    [REFUSED_UNKNOWN_TENANT] = "reason=\"unknown_tenant\"",
};

void api_metrics_init(ApiMetrics *m, Metrics *metrics, const char *name)
{
    for (int i = 0; i < REFUSED_COUNT; i++) {
        m->refused[i] =
            metrics_counter(metrics, name, REFUSAL_LABELS[i], "Requests and commands refused");
    }
}
