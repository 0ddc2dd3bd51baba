// SPDX-License-Identifier: Apache-2.0
// Appends to the audit log from the loop. Several programs write, and one chain holds all: an entry
// is stored only behind the one whose hash it holds (Nats-Expected-Last-Sequence); who comes second
// reads what came first and tries again. What waits at once for one tenant and of one kind goes as
// one message, so that a burst of writes costs few turns of the chain. Law: what an entry is about
// happens after `done` without an error, or not at all.
#pragma once

#include "common/auditlog/audit_entry.h"
#include "common/bus/jetstream/bus.h"

enum { AUDIT_TRIES_MAX = 64, AUDIT_DEADLINE_MS = 10000 };

typedef struct AuditLog AuditLog;

// Borrows the bus. A process keeps one: it knows the head, so an entry costs one request.
AuditLog *audit_log_new(Bus *bus);
// What still waits is answered ERROR_CANCELLED at once. NULL-safe.
void audit_log_free(AuditLog *log);

// err NULL: stored behind everything that was there. TRANSIENT: not within 10 s or 64 tries;
// PERMANENT: the note cannot be stored. Once; such a note may be answered inside of the call.
typedef void (*AuditDone)(void *ctx, const Error *err, const AuditHead *head);
// In their order for one tenant and kind; the note is copied. At most 1,024 wait, beyond that they
// fail TRANSIENT.
void audit_log_append(AuditLog *log, const AuditNote *note, AuditDone done, void *ctx);
