// SPDX-License-Identifier: Apache-2.0
// What the one gateway that folds FEED does besides: it publishes the statuses that inboxes have to
// tell (feed.statuses) and the events that a time brings (a snooze ends, an item expires), and
// drops items that are older than FEED keeps them. All ids are derived, so doing a thing twice, or
// two gateways at once, adds nothing.
#pragma once

#include "common/bus/jetstream/bus.h"
#include "common/db/db.h"
#include "common/service/metrics.h"

typedef struct InboxDuties InboxDuties;

enum { INBOX_KEPT_DAYS = 400 }; // as the stream

// Borrows bus and pool. `may` says whether this process is the one.
InboxDuties *inbox_duties_new(
    Bus *bus, DbPool *pool, Metrics *metrics, bool (*may)(void *ctx), void *ctx);
void inbox_duties_soon(InboxDuties *duties); // there are statuses to tell
void inbox_duties_stop(InboxDuties *duties, void (*on_stopped)(void *ctx), void *ctx);
void inbox_duties_free(InboxDuties *duties); // only after on_stopped
