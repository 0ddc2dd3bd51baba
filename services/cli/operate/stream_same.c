// SPDX-License-Identifier: Apache-2.0
#include "services/cli/operate/stream_same.h"

bool stream_stored_at(
    Session *session, Arena *arena, const char *stream, uint64_t sequence, const char *filter,
    int64_t *ret_us, Error *err)
{
    BusMessage message = {0};
    bool found = false;
    MessageQuery query = {.stream = stream, .sequence = sequence, .next_of = filter};
    bool ok = session_get_message(session, &query, arena, &message, &found, err);
    *ret_us = message.stored_at_us;
    return ok;
}

bool stream_same(
    Session *session, Arena *arena, const char *stream, const StreamPlace *place,
    const StreamState *state, bool *ret_same, Error *err)
{
    int64_t stored_at_us = 0;
    switch (stream_check(place, state)) {
    case STREAM_SAME:
    case STREAM_RENAMED:
        *ret_same = true;
        return true;
    case STREAM_LOOK:
        if (!stream_stored_at(session, arena, stream, place->next - 1, NULL, &stored_at_us, err)) {
            return false;
        }
        *ret_same = stored_at_us == place->last_at_us;
        return true;
    case STREAM_AGAIN:
    case STREAM_OTHER:
        *ret_same = false;
        return true;
    }
    return false;
}
