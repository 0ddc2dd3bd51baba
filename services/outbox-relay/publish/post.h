// SPDX-License-Identifier: Apache-2.0
// Posting one batch: each row into its stream, and what came of it. Of one ordering key only
// one publish is in the air; a row that does not fit is passed over, one that could not be stored
// holds back those of its key behind it. After `until_us` nothing more goes out: another relay may
// have the rows by then.
#pragma once

#include "common/bus/jetstream/bus.h"

typedef enum PostFate {
    POST_WAITS,
    POST_STORED,
    POST_REFUSED, // it can never be published: `reason` says why
    POST_LEFT,    // not stored, or not known to be: `reason` says why; it is published again
} PostFate;

typedef struct Post {
    BusOut out;       // all that it points to lives until the end
    Str ordering_key; // ptr NULL: none
    bool repeated;    // POST_STORED, and was there before under the same id
    PostFate fate;    // POST_REFUSED beforehand: it is passed over
    Str reason;       // in the arena
} Post;

typedef struct PostRun {
    Bus *bus;
    Arena *arena; // lives until on_done
    Post *posts;
    size_t count;
    const int64_t *until_us; // clock_mono_us(); may move while it runs
    void (*on_done)(void *ctx);
    void *ctx;
} PostRun;

// on_done comes from the loop, once, never from inside the call; every post has its fate then. The
// bus must not be closed before; a closing relay lets the batch end.
void post_all(const PostRun *run);
