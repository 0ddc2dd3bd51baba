// SPDX-License-Identifier: Apache-2.0
// FeedFold: events of FEED gathered in memory until they are written (feed_sql.h). Pure.
//
// What is said of one item within a round is merged: its times are earliest or latest ones, and of
// archiving and snoozing the last word by its own time stands. What must not change places with
// what came before it (an item behind "all up to here", a state behind the end of a snooze) begins
// the next round. There are FEED_ROUNDS rounds, each a few statements, and an empty one costs none;
// a recipient who needs more within one flush has the rest in the last one, where of two words
// about all items only one counts for an item that both are about. Removals are the last step of
// the last round, and take no item that was stored behind them.
#pragma once

#include "common/base/arena.h"
#include "common/base/error.h"
#include "common/bus/jetstream/bus.h"
#include "stentor/v1/feed.pb-c.h"

enum {
    FEED_ROUNDS = 64,
    // What a projector of FEED folds into one flush (projector.h), so that it fits one transaction
    // whatever the events are: FEED_EVENT_MAX bytes each, or states of FEED_STATE_IDS_MAX items,
    // each of them a row.
    FEED_FLUSH_MAX = 256,
    FEED_FLUSH_BYTES = 7 * 1024 * 1024,
};

// In the order in which a round is written.
typedef enum FeedStep {
    FEED_ITEM,    // a new item
    FEED_ENDED,   // a snooze ends
    FEED_PATCH,   // what the recipient did with one item
    FEED_UP_TO,   // with all items up to one
    FEED_EXPIRED, // an item's time is over
    FEED_REMOVED, // what was sealed under a key is gone
    FEED_STEPS
} FeedStep;

// Times in us; 0: nothing said.
typedef struct FeedRow {
    FeedStep step;
    Str tenant;
    Str recipient; // 32 bytes; empty: FEED_REMOVED
    Str id;        // the notification's; of FEED_UP_TO the last one's
    uint64_t sequence;
    const Stentor__V1__FeedItem *item;
    Str key_subject; // FEED_REMOVED
    int64_t at_us;   // FEED_UP_TO, FEED_EXPIRED; FEED_ENDED: the end
    int64_t up_to_us;
    Stentor__V1__FeedAction action; // FEED_UP_TO
    // FEED_PATCH
    int64_t fetched_us, seen_us, read_first_us, read_last_us, unread_us, clicked_us;
    int64_t archive_us, snooze_us; // when the last word on it was said
    bool archived;
    int64_t snoozed_until_us; // 0: not
} FeedRow;

typedef struct FeedFold FeedFold;

FeedFold *feed_fold_new(void);
void feed_fold_free(FeedFold *fold); // NULL-safe
void feed_fold_clear(FeedFold *fold);
// `arena` lives until feed_fold_clear. ERROR_PERMANENT: not an event of its subject's tenant, or it
// holds what no table takes.
bool feed_fold_event(FeedFold *fold, const BusMessage *message, Arena *arena, Error *err);
FeedRow *const *feed_fold_rows(
    const FeedFold *fold, size_t round, FeedStep step, size_t *ret_count);
uint64_t feed_fold_first(const FeedFold *fold); // lowest sequence; 0: nothing folded
