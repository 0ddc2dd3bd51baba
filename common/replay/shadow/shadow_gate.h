// SPDX-License-Identifier: Apache-2.0
// The gate as a pure function: would this request be let through under these rules, at that time?
// Rules that are not there yet (preferences, limits) become fields of ShadowRules.
#pragma once

#include <stdbool.h>

#include "stentor/v1/request.pb-c.h"

typedef struct ShadowRules {
    bool tenant_suspended;
} ShadowRules;

typedef enum ShadowGate { SHADOW_PASSED, SHADOW_EXPIRED, SHADOW_SUPPRESSED } ShadowGate;

ShadowGate shadow_gate(
    const ShadowRules *rules, const Stentor__V1__NotificationRequest *request, int64_t at_us);
