// SPDX-License-Identifier: Apache-2.0
// Windows, their items and cancellations as statements. What arrives is written under the tenants'
// row-level security; statements across tenants go through the functions of the schema.
#pragma once

#include "common/db/db.h"
#include "services/digest-flusher/digest.h"
#include "services/digest-flusher/work.h"

enum {
    DIGEST_FREEZE_MAX = 64,   // windows of one pass
    DIGEST_ABSORB_MAX = 5000, // items that one transaction takes out of their windows
    DIGEST_FORGET_MAX = 1000,
    DIGEST_KEPT_DAYS = 35, // longer than DEFERRED keeps its events
};

// Columns of a freeze's rows; the rows of a window follow each other.
enum {
    FREEZE_TENANT,
    FREEZE_WINDOW_ID,
    FREEZE_FLUSH_AT,
    FREEZE_FROZEN_AT,
    FREEZE_TEMPLATE,
    FREEZE_VERSION,
    FREEZE_LOCALE,
    FREEZE_VERDICT,
    FREEZE_LIVE,
    FREEZE_LISTED,
    FREEZE_PAYLOAD,
};

// A key of a cancellation or, empty, NULL.
void digest_push_key(DbArray *array, Str key);

// Stores items. An item joins its window while that is open; later it becomes due work of its own,
// at its time, or suppressed if the window was suppressed before the item was accepted. A repeated
// item changes nothing. Three statements: the locks of the second keep a freeze out, the snapshot
// of the third has seen the last freeze.
void digest_insert(DbTxn *txn, const DueWork *const *items, size_t count);

// Cancellations: stored; unclaimed work with their keys becomes `suppressed`, items of open windows
// too.
void digest_cancel(DbTxn *txn, const DueWork *const *cancels, size_t count);

// Result 0: items absorbed of windows whose digest is decided. Result 1: the frozen windows. Result
// 2: one row, when the next one is due that is not due yet (NULL: none).
void digest_freeze(DbTxn *txn, int64_t lease_ms);

// The decision: windows with a digest (`digests`, in the order of their tenant) and without.
// Result 1: how many items followed at once; DIGEST_ABSORB_MAX: there may be more.
void digest_make(DbTxn *txn, const Digest *digests, size_t count);

// Deletes rows that no redelivery can need, a bounded number. Result 0: how many.
void digest_forget(DbTxn *txn);

// Result 0: one row, how many windows wait and when the first of them is due (NULL: none).
void digest_backlog(DbTxn *txn);
