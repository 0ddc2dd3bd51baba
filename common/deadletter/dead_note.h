// SPDX-License-Identifier: Apache-2.0
// Dead letters that are sent again or dropped, in the audit log. Law: the entry is stored before
// anything is published or deleted; without it nothing is. One entry names the letters of a tenant
// that go together.
#pragma once

#include "common/auditlog/audit_append.h"
#include "common/deadletter/resend_group.h"

// Letters of one entry: their sequences fit into a detail (AUDIT_TEXT_MAX).
enum { DEAD_NOTE_MAX = 48 };

typedef struct DeadNote {
    bool drop; // else sent again
    const char *tenant;
    const char *actor; // "API key k1", "operator"
    const char *request_id;
    const char *program;
    const char *notification_id; // of a single letter; NULL or "": none
    const uint64_t *sequences;   // in DEAD
    size_t count;                // 1 to DEAD_NOTE_MAX
    bool may_double, ignore_expiry;
    int64_t at_us;
} DeadNote;

// A repeat with the same request_id, letters and at_us is the same entry.
void dead_note_append(AuditLog *log, const DeadNote *note, AuditDone done, void *ctx);

// A step of a group (resend_group.h): notes what is LETTER_OPEN and would be published or deleted,
// an entry for each tenant. `how` without letters; tenant, notification and letters are the
// group's. What cannot be noted is LETTER_UNNOTED.
void dead_note_group(
    AuditLog *log, ResendGroup *group, const DeadNote *how, void (*done)(void *ctx), void *ctx);
