// SPDX-License-Identifier: Apache-2.0
// The gate's own questions, for its trace (gate_trace.h): what is asked there is what decides.
#pragma once

#include "common/model/rules/gate.h"

// What a recipient said that fits best; NULL: nothing.
const GatePreference *gate_preference(const GateCase *c, const GatePerson *person);
const GateConsent *gate_consent(const GateCase *c, const GatePerson *person);
// Why this recipient refuses it, or GATE_NO_REASON.
GateReason gate_refuse_person(const GateCase *c, const GatePerson *person);

bool gate_is_urgent(const GateCase *c); // neither quiet hours nor digests hold it up
Zone *gate_zone(const GateCase *c);
QuietHours gate_quiet_hours(const GateCase *c);

typedef enum GateLimit {
    GATE_LIMIT_TENANT,
    GATE_LIMIT_CHANNEL, // of the tenant on this channel
    GATE_LIMIT_RECIPIENT,
    GATE_LIMIT_RECIPIENT_CHANNEL,
    GATE_LIMITS
} GateLimit;

typedef struct GateTurn {
    bool limited;
    bool counts;     // false: critical passes over it
    int64_t turn_us; // 0: now
} GateTurn;

void gate_turns(const GateCase *c, GateTurn ret[GATE_LIMITS]);
