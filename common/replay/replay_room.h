// SPDX-License-Identifier: Apache-2.0
// Room for copies: a working stream that is full refuses what the pipeline writes, so a replay
// keeps away from that. It looks at the stream once a second and waits while there is no room: the
// clock makes some (common/bus/topology/trim.h).
#pragma once

#include "common/session/session.h"

enum {
    REPLAY_FILL_PERCENT = 85, // copies fill a stream up to here
    REPLAY_ROOM_WAIT_S = 40,  // then waits so long for room: more than two passes of the clock
    REPLAY_COPY_OVERHEAD =
        256 // of a message besides its payload: subject, headers, the store's own
};

typedef struct ReplayRoom {
    Session *session;
    const char *stream;
    uint64_t first, last; // sequences
    int64_t last_at_us;  // when the last one was stored; of an empty stream: no later than the next
    int64_t max_bytes;   // 0 or less: no limit
    int64_t used_bytes;  // at the last look
    int64_t added_bytes; // since, or in flight then
    int64_t asked_bytes; // the same, as of the look that is under way
    int64_t looked_us;
    int64_t full_since_us; // 0: it is not
    bool looking;
} ReplayRoom;

// The first look, which waits for the answer. ERROR_PERMANENT: there is no such stream.
bool replay_room_open(
    ReplayRoom *room, Session *session, const char *stream, Arena *arena, Error *err);
// Looks again when it is time; the answer comes from the loop and ends the session's wait. What is
// in flight now may or may not be in the answer.
void replay_room_look(ReplayRoom *room, int64_t now_us, size_t air_bytes);
void replay_room_take(ReplayRoom *room, size_t payload_bytes);
bool replay_room_is_there(const ReplayRoom *room);
// true when it has been full for so long that waiting is in vain.
bool replay_room_in_vain(ReplayRoom *room, int64_t now_us, Error *err);
