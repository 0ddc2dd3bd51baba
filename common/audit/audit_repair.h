// SPDX-License-Identifier: Apache-2.0
// --repair: what is lost and can be driven again is published again from the accept log, under the
// same event ids and new message ids. The stages derive the same events from it; the ledger refuses
// what was tried and publishes its outcome once more, so nothing is sent that was sent before.
#pragma once

#include "common/audit/audit.h"

// After two readings. *ret_count: notifications whose events are stored again.
bool audit_repair(Audit *audit, uint64_t *ret_count, Error *err);

// What --repair does about this one; its end may have passed it by.
AuditRemedy audit_remedy_of(const Audit *audit, const AuditEntry *entry);
