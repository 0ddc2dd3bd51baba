// SPDX-License-Identifier: Apache-2.0
// The end of segments whose time is over (log_end.h). The object is deleted first, with each of its
// versions, then its row says so; killed between the two it is deleted again. The rows stay, so
// that the stream's windows go on without a gap.
//
// Nothing is deleted under a hold of a tenant in it, of the log before the class's units have left
// Postgres, while clocks disagree (common/archive/clocks.h), or by a database that does not own the
// bucket.
#pragma once

#include "common/db/db.h"
#include "common/service/metrics.h"
#include "common/storage/storage.h"
#include "services/archiver/log/log_end.h"

typedef struct LogExpiry LogExpiry;

typedef struct LogExpiryOptions {
    DbPool *pool;
    Storage *storage;
    Metrics *metrics;
    LogEndRules rules;
} LogExpiryOptions;

// Borrows pool and storage.
LogExpiry *log_expiry_new(const LogExpiryOptions *options);
void log_expiry_free(LogExpiry *expiry); // NULL-safe; only an idle one
// From time to time, by the process that stores the log: begins a pass when one is due.
void log_expiry_look(LogExpiry *expiry, int64_t now_us, int64_t mono_us);
// No pass is begun any more; on_idle when none is under way, now or later.
void log_expiry_stop(LogExpiry *expiry, void (*on_idle)(void *ctx), void *ctx);
