// SPDX-License-Identifier: Apache-2.0
// How far the durable consumers of EVENTS are, from JetStream's answers. Pure.
#pragma once

#include "common/base/arena.h"
#include "common/base/error.h"

typedef struct EventReaders {
    uint64_t past;     // every reader is past it, included
    const char *named; // the reader that is least far, in the arena; "": there is none
    size_t seen;       // consumers read so far
    size_t total;
} EventReaders;

// The last sequence of STREAM.INFO's answer. ERROR_TRANSIENT: it is another one.
bool event_readers_begin(Str reply, EventReaders *ret, Error *err);
// One page of CONSUMER.LIST, asked for after that. A consumer that waits for nothing is past what
// the stream had at the beginning; one of a service that need not run and never did holds nothing
// back; an ephemeral one is a reader's own business. ERROR_TRANSIENT as above, and when a cluster's
// list is not whole.
bool event_readers_take(Str reply, Arena *arena, EventReaders *readers, Error *err);
