// SPDX-License-Identifier: Apache-2.0
// One event of the log to the bits that it sets. Pure. An unreadable event sets none: its
// stage has written a dead letter.
#pragma once

#include "common/audit/audit_table.h"
#include "common/bus/jetstream/bus.h"

typedef struct AuditMarks {
    uint64_t floor;    // acknowledged by the stage's consumer up to here
    uint64_t position; // folded by history up to here
    int64_t now_us;    // when the reading began
} AuditMarks;

void audit_event(
    AuditTable *table, const BusMessage *message, const AuditMarks *marks, Arena *scratch);
