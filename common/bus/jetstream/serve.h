// SPDX-License-Identifier: Apache-2.0
// Serve: a subject that no stream has. Who publishes there asks, and is answered by one process of
// the service, or gets "no responders" at once. One for a bus. It keeps nothing: what is lost
// with a connection or a process was not answered, and whoever asked asks again.
#pragma once

#include "common/bus/jetstream/bus.h"

typedef struct Serve Serve;

typedef struct ServeOptions {
    const char
        *subject; // "in.evt.>"; the service's rights must have it with the queue (nats_rights.c)
    const char *queue;  // of all processes of the service together
    size_t in_hand_max; // asked and not answered yet; beyond it `busy` is the answer
    size_t bytes_max;   // of their payloads
    const char *busy;
} ServeOptions;

// Valid until it is answered.
typedef struct Asked {
    Str subject;
    Str payload;
    void *native; // the client's own message
    Serve *serve;
} Asked;

// Each is answered once (asked_answer), in the call or later.
typedef void (*ServeHandler)(void *ctx, Asked *asked);

// From now on, whenever there is a connection. The options' strings are static.
Serve *serve_new(Bus *bus, const ServeOptions *options, ServeHandler on_asked, void *ctx);
// Nothing more is taken; on_stopped when all that was taken is answered, a later call at most.
void serve_stop(Serve *serve, void (*on_stopped)(void *ctx), void *ctx);
void serve_free(Serve *serve); // after on_stopped; NULL is none

// Who did not ask for an answer gets none. Frees `asked`.
void asked_answer(Asked *asked, Str payload);
// Its headers, each name's first value; slices live as long as `asked`, the array in `arena`.
// false: more than `max`.
bool asked_headers(
    const Asked *asked, Arena *arena, size_t max, BusHeader **ret, size_t *ret_count);

// bus.c's: a message, or NULL after the last one.
void serve_take(Serve *serve, void *native);
