// SPDX-License-Identifier: Apache-2.0
// Trimming: a working stream that is nearly full loses its oldest messages that every consumer has
// processed. Streams keep messages until their age ends and a full one refuses (topology.h), so
// without this what was worked off long ago would stop the pipeline. Law: a message goes only when
// it is below the ack floor of every durable consumer of its stream and below what projections have
// stored; what still waits for a consumer is never touched: a stream full of such still refuses. A
// service that need not run (order-saga) holds nothing back before it has read for the first time.
#pragma once

#include "common/bus/jetstream/bus.h"

enum { TRIM_FROM_PERCENT = 75, TRIM_TO_PERCENT = 60, TRIM_STREAMS_MAX = 32 };

// How far a stream is, for an operator who asks what trimming will do.
typedef struct TrimStream {
    const char *stream; // static
    double fill;        // bytes by max_bytes, 0..1, before the pass
    uint64_t removed;   // messages, by this pass
} TrimStream;

// What projections have stored of a stream that they read: the lowest of them.
typedef struct TrimFloor {
    Str stream;
    uint64_t sequence;
} TrimFloor;

// Called once, from the loop. `err`: the first thing that failed; the streams before it are done.
typedef void (*TrimDone)(void *ctx, const TrimStream *streams, size_t count, const Error *err);

// One pass over the working streams. A stream of REQUEST_* is trimmed only with a floor of its own,
// for a projection reads it. The floors are copied.
void trim_pass(Bus *bus, const TrimFloor *floors, size_t floor_count, TrimDone on_done, void *ctx);

// Pure, for the pass and its test: the first sequence to keep. `first` when nothing may or need go.
typedef struct TrimState {
    uint64_t first, messages, bytes, max_bytes;
    uint64_t floor; // every consumer has processed up to here, included
} TrimState;
uint64_t trim_keep_from(const TrimState *state);
