// SPDX-License-Identifier: Apache-2.0
// The audit log for callers that wait: one entry stored, and all of them read in order.
#pragma once

#include "common/auditlog/audit_append.h"
#include "common/session/stream_walk.h"

// Stored behind everything that was there, or an error as audit_log_append's. ret_head may be NULL.
bool session_audit(Session *session, const AuditNote *note, AuditHead *ret_head, Error *err);

// Every entry that AUDIT has now, in order; the message lives during the call. ERROR_PERMANENT:
// there is no such stream.
bool session_audit_read(Session *session, StreamEach each, void *ctx, Error *err);
