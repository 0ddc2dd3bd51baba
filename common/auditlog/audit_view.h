// SPDX-License-Identifier: Apache-2.0
// An entry of the audit log as JSON, and which entries are wanted: the same for the command line
// and the API. Pure.
#pragma once

#include <jansson.h>

#include "common/auditlog/audit_entry.h"

// Entry number `index` of a message, from 0; NULL: it has no more. The message's kind is that of
// all.
const Stentor__V1__AuditEntry *audit_view_entry(
    const Stentor__V1__AuditEntry *message, size_t index);
// New reference. Entries of one message have one sequence.
json_t *audit_view_json(uint64_t sequence, const char *kind, const Stentor__V1__AuditEntry *entry);

// Empty, and 0: any.
typedef struct AuditFilter {
    Str kind, tenant, actor, action;
    Str target;             // the target, or the notification that it is about
    int64_t from_us, to_us; // to_us: before it
} AuditFilter;

bool audit_filter_fits(
    const AuditFilter *filter, const char *kind, const Stentor__V1__AuditEntry *entry);
