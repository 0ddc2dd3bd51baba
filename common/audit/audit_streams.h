// SPDX-License-Identifier: Apache-2.0
// The audit's reading of JetStream: each stream once, in order, without acks, from the beginning
// of the span to what was its end when the read began.
#pragma once

#include "common/audit/audit.h"

// How far history has folded a stream: 0 when it has not.
typedef uint64_t (*AuditPosition)(void *ctx, const char *stream);

// Reads all streams of a stage ("REQUEST": its four lanes; "STATUS": itself). What lies beyond the
// floor of the stage's consumer, and beyond history's position, is marked as waiting.
bool audit_read_stage(
    Audit *audit, const char *stage, AuditPosition position, void *ctx, Error *err);
