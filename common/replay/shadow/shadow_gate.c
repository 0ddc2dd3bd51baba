// SPDX-License-Identifier: Apache-2.0
#include "common/replay/shadow/shadow_gate.h"

ShadowGate shadow_gate(
    const ShadowRules *rules, const Stentor__V1__NotificationRequest *request, int64_t at_us)
{
    if (request->expires_at_us > 0 && request->expires_at_us <= at_us) {
        return SHADOW_EXPIRED;
    }
    return rules->tenant_suspended ? SHADOW_SUPPRESSED : SHADOW_PASSED;
}
