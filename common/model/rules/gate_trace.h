// SPDX-License-Identifier: Apache-2.0
// What the gate asked and how each question came out, in a line of 6 to some 40 characters that a
// status event carries: "T+S+U+C+(5/1)A+Q>(r2200-0700)". Also why something did *not* wait can be
// read from it later, when consents, limits and quiet hours have changed. Pure. Law: the last
// question that refuses, defers or gathers is the reason of the decision.
//
// A question is a capital letter, what came out a sign, and a rule in parentheses what decided it.
// A question that had nothing to ask (no limits, no quiet hours) is left out, and so is all behind
// a refusal. Signs and letters that a reader does not know are passed over.
#pragma once

#include "common/model/rules/gate.h"

enum { GATE_TRACE_SIZE = 128, GATE_TRACE_STEPS_MAX = 16 };

typedef enum GateStep {
    GATE_STEP_NONE = 0,
    GATE_STEP_GUARDIAN,    // G: (redirect), (copy)
    GATE_STEP_TENANT,      // T: not suspended
    GATE_STEP_POLICY,      // P: (channel), (category)
    GATE_STEP_EXPIRY,      // E: (later): before it could go out
    GATE_STEP_SUPPRESSION, // S: (tenant), (platform), (old_key), (domain)
    GATE_STEP_OPT_OUT,     // U: unsubscribed from everything; (owner)
    GATE_STEP_CONSENT, // C: (5/1): category and channel of the consent, 0: any; (caller), (owner)
    GATE_STEP_PREFERENCE,  // F: (5/1), (owner)
    GATE_STEP_ADDRESS,     // A
    GATE_STEP_LIMITS,      // L: (tenant), (channel), (recipient), (recipient_channel)
    GATE_STEP_SCHEDULE,    // W
    GATE_STEP_QUIET_HOURS, // Q: (r2200-0700): the recipient's, (t...): the tenant's
    GATE_STEP_DIGEST,      // D: (hourly), (daily), (weekly)
    GATE_STEP_COUNT
} GateStep;

typedef enum GateOutcome {
    GATE_PASSED = '+',
    GATE_REFUSED = '-',
    GATE_DEFERRED = '>',
    GATE_GATHERED = '&',
    GATE_WAIVED =
        '!', // it would have refused or deferred; this category or priority passes over it
} GateOutcome;

// decision: what gate_decide, or gate_refuse as a refusal, said of the same case.
void gate_trace(const GateCase *facts, const GateDecision *decision, char out[GATE_TRACE_SIZE]);

// It was found afterwards that the address cannot be opened any more: A-(erased) takes the place of
// A+.
void gate_trace_erased(char trace[GATE_TRACE_SIZE]);

typedef struct GateTraceStep {
    GateStep step;
    GateOutcome outcome;
    Str rule; // empty: none
} GateTraceStep;

// The known questions in their order; 0: the text is empty or no trace. Slices point into it.
size_t gate_trace_read(Str trace, GateTraceStep ret[GATE_TRACE_STEPS_MAX]);
