// SPDX-License-Identifier: Apache-2.0
// A session advisory lock that decides who of several replicas is the active one. Held by one
// connection of its own: when that connection dies the lock is free and a stand-by has it within
// DB_LOCK_POLL_MS; a process that lost it waits longer than that before it tries again. A loss is
// reported at once, or after two to three seconds when the server only falls silent; a transaction
// under way may still commit: a writer under the lock must fence (compare the stored sequence). A
// holder that lives but stands still (SIGSTOP, a frozen machine behind a live connection) gives no
// sign of life: after DB_LOCK_SILENT_MS a stand-by ends its session, and with it every transaction
// of the same role that has waited that long for its client's next word. So roles that hold such
// locks must not keep a transaction open while they think.
#pragma once

#include <uv.h>

#include "common/base/str.h"

enum { DB_LOCK_POLL_MS = 1000, DB_LOCK_SILENT_MS = 2500 };

typedef struct DbLock DbLock;

// `name` is hashed to the lock's 64 bit key. on_change(ctx, held) is called from the loop on each
// change, and no more once db_lock_close was called.
DbLock *db_lock_new(
    uv_loop_t *loop, const char *url, const char *name, void (*on_change)(void *ctx, bool held),
    void *ctx);
bool db_lock_held(const DbLock *lock);
int64_t db_lock_key(const char *name); // as pg_locks has it, in two halves
void db_lock_close(DbLock *lock, void (*on_closed)(void *ctx), void *ctx); // releases
