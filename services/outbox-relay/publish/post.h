// SPDX-License-Identifier: Apache-2.0
// Publishes one batch and reports each row's fate. Of one ordering key one publish is in flight at
// a time; a row that does not fit is skipped, a row that could not be stored holds back the later
// rows of its key. After `until_us` nothing more is published: another relay may have the rows by
// then.
#pragma once

#include "common/bus/jetstream/bus.h"

typedef enum PostFate {
    POST_WAITS,
    POST_STORED,
    POST_REFUSED, // it can never be published: `reason` says why
    POST_LEFT,    // not stored, or unknown: `reason` says why; it is published again
} PostFate;

typedef struct Post {
    BusOut out;       // what it points to lives until the end
    Str ordering_key; // ptr NULL: none
    bool repeated;    // POST_STORED, and the stream already had its id
    PostFate fate;    // POST_REFUSED beforehand: it is skipped
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

// on_done is called once, from the loop, never from inside the call; every post has its fate then.
// The bus must stay open until then.
void post_all(const PostRun *run);
