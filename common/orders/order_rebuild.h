// SPDX-License-Identifier: Apache-2.0
// Orders once more, into a copy of their tables: the same events, fold and statements as the live
// ones, for `stentor rebuild saga`. It decides and does not act: no command, time-out or dead
// letter is written.
//
// Law: exactly the events are folded that the live tables hold. That is each one up to `settled`,
// and behind it those in the copy's table `consumed`.
#pragma once

#include "common/bus/jetstream/bus.h"
#include "common/db/keyring.h"
#include "common/domain/event_seal.h"

typedef struct OrderRebuild OrderRebuild;

typedef struct OrderRebuildOptions {
    const char *schema; // the live one, which statements name
    const char *copy;   // where they write
    DbPool *pool;
    Keyring *keyring; // of KeyringOptions.found_only; NULL: states alone, and no address
    EventKeys
        *event_keys; // that events are opened with, and those that wait for their order sealed
    uint64_t settled;
    int64_t max_attempts;
} OrderRebuildOptions;

enum { ORDER_REBUILD_BATCH = 512 }; // messages between two writes, twice

// Borrows what the options point to.
OrderRebuild *order_rebuild_new(const OrderRebuildOptions *options);
// Reads one message, in the order in which events came; the message may go. What was taken is
// written in parts of twice ORDER_REBUILD_BATCH.
void order_rebuild_take(OrderRebuild *rebuild, const BusMessage *message);
bool order_rebuild_has_taken(const OrderRebuild *rebuild); // something to write
// Folds and writes what was taken; `done` comes from the loop. Meanwhile the next may be taken.
void order_rebuild_write(
    OrderRebuild *rebuild, void (*done)(void *ctx, const Error *err), void *ctx);
uint64_t order_rebuild_events(const OrderRebuild *rebuild);     // folded
uint64_t order_rebuild_unreadable(const OrderRebuild *rebuild); // skipped
void order_rebuild_free(OrderRebuild *rebuild); // not while it writes; the pool being closed
