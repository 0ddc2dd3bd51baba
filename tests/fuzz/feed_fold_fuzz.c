// SPDX-License-Identifier: Apache-2.0
// links: stentor_feed
// Any bytes as an event of FEED: folded into a few rows of its tenant, or refused as PERMANENT.
#include <stdlib.h>

#include "common/feed/feed_event.h"
#include "common/feed/feed_fold.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t count_rows(const FeedFold *fold)
{
    size_t all = 0;
    for (size_t round = 0; round < FEED_ROUNDS; round++) {
        for (int step = 0; step < FEED_STEPS; step++) {
            size_t count = 0;
            FeedRow *const *rows = feed_fold_rows(fold, round, (FeedStep)step, &count);
            for (size_t i = 0; i < count; i++) {
                if (!str_eq(rows[i]->tenant, STR("acme"))) {
                    abort();
                }
            }
            all += count;
        }
    }
    return all;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena *arena = arena_new(0);
    FeedFold *fold = feed_fold_new();
    BusMessage message = {
        .subject = STR("feed.acme"), .payload = str_of(data, size), .sequence = 1};
    Error err = {0};
    bool folded = feed_fold_event(fold, &message, arena, &err);
    if (!folded && (err.kind != ERROR_PERMANENT || count_rows(fold) != 0)) {
        abort();
    }
    message.sequence = 2;
    if (feed_fold_event(fold, &message, arena, &err) != folded) {
        abort();
    }
    (void)count_rows(fold);
    feed_fold_free(fold);
    arena_free(arena);
    return 0;
}
