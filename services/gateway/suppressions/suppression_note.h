// SPDX-License-Identifier: Apache-2.0
// The release of a suppression in the audit log: what CONFIG keeps of an entry is bounded, the
// audit log has its release for as long as mails.
#pragma once

#include "common/auditlog/audit_append.h"
#include "stentor/v1/config.pb-c.h"

// entry: with released_at_us and released_by. Law: it is noted before it is stored.
void suppression_note_release(
    AuditLog *log, const Stentor__V1__Suppression *entry, AuditDone done, void *ctx);
