// SPDX-License-Identifier: Apache-2.0
// A reply of START ends the opt-out that a reply of STOP made, and no other, under whichever hash
// key it was stored: a worker of REPLIES. It is here and not where replies arrive, because a
// release belongs into the audit log, which a service that strangers reach may not write.
//
// Crash window (tests/integration/faults/test_crash_points.py): killed between the audit log's
// entry and the stored release, the reply comes again and makes the same two.
#pragma once

#include "common/auditlog/audit_append.h"
#include "common/bus/consume/worker.h"
#include "common/codec/master_key.h"
#include "common/service/metrics.h"

typedef struct ReplyReleases ReplyReleases;

// Borrows all. It reads at once.
ReplyReleases *reply_releases_new(Bus *bus, AuditLog *audit, MasterKey *master, Metrics *metrics);
// No new ones; on_stopped when all in hand are settled and the worker is gone.
void reply_releases_stop(ReplyReleases *releases, void (*on_stopped)(void *ctx), void *ctx);
void reply_releases_free(ReplyReleases *releases); // after that
