// SPDX-License-Identifier: Apache-2.0
// What the archiving process restored or expired becomes an entry of AUDIT for each tenant that the
// unit has rows of, from archive.journal: the child has no NATS. Killed between an entry and the
// note that it is stored: the same entry comes again, which AUDIT recognises.
#pragma once

#include "services/archiver/archive/archive_child.h"

typedef struct ArchiveAudit ArchiveAudit;

ArchiveAudit *archive_audit_new(const ArchiveChildOptions *options);
void archive_audit_stop(ArchiveAudit *audit, void (*on_stopped)(void *ctx), void *ctx);
void archive_audit_free(ArchiveAudit *audit); // after on_stopped; NULL-safe
