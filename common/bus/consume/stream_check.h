// SPDX-License-Identifier: Apache-2.0
// Stream check: is a stream still the one that was read? Pure. A sequence belongs to one stream of
// a name, and the stream's creation time says which. But nats-server 2.9.10 changes that time by
// itself: when a stream's configuration is updated it stores the time of its own last start with
// it, and reports that from its next start on. So another time is a reason to look closer, not a
// proof.
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

// What STREAM.INFO says.
typedef struct StreamState {
    int64_t created_us;
    uint64_t first, last;  // an empty stream: first is last + 1
    bool last_per_subject; // it keeps no more: any message may be gone rightly
} StreamState;

// How far it was read.
typedef struct StreamPlace {
    int64_t created_us; // when the stream was created, as it was known then; 0: not known
    uint64_t next;      // the first sequence that was not read
    int64_t last_at_us; // when message next - 1 was stored, by the server's clock; 0: not known
} StreamPlace;

typedef enum StreamVerdict {
    STREAM_SAME,
    STREAM_RENAMED, // the same; state.created_us is its creation time from now on
    STREAM_LOOK,    // message next - 1 decides: stored at last_at_us, it is RENAMED
    STREAM_AGAIN,   // nothing shows it, and reading it all again costs little: RENAMED, from 1 on
    STREAM_OTHER,   // or nothing shows that it is the same
} StreamVerdict;

bool stream_state_read(const json_t *info, StreamState *ret); // false: no answer to STREAM.INFO
StreamVerdict stream_check(const StreamPlace *place, const StreamState *state);
