// SPDX-License-Identifier: Apache-2.0
// POST /v1/recipients/{id}/explain and /v1/recipients/explain: would such a notification reach this
// recipient, or this address, now? The gate itself (common/gate) is run dry: nothing is made, and
// no place of a limit is taken.
#pragma once

#include "common/gate/gate_run.h"
#include "services/gateway/why/why_read.h"

typedef struct ExplainApi {
    const WhyReader *reader;
    Gate gate;
} ExplainApi;

void explain_add(Api *api, ExplainApi *explain); // borrows it
