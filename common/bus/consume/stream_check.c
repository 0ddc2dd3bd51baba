// SPDX-License-Identifier: Apache-2.0
#include "common/bus/consume/stream_check.h"

#include "common/base/clock.h"

bool stream_state_read(const json_t *info, StreamState *ret)
{
    const char *created = json_string_value(json_object_get(info, "created"));
    const json_t *state = json_object_get(info, "state");
    const json_t *config = json_object_get(info, "config");
    if (created == NULL || state == NULL || !clock_parse(str_from(created), &ret->created_us)) {
        return false;
    }
    ret->first = (uint64_t)json_integer_value(json_object_get(state, "first_seq"));
    ret->last = (uint64_t)json_integer_value(json_object_get(state, "last_seq"));
    ret->last_per_subject = json_integer_value(json_object_get(config, "max_msgs_per_subject")) > 0;
    return true;
}

// The time that the server reports is the stream's creation or a later start of the server. So a
// stream that reports a time before the last message read was there when that was stored, and was
// not made since.
static bool was_there(const StreamPlace *place, const StreamState *state)
{
    return place->last_at_us != 0 && state->created_us <= place->last_at_us;
}

StreamVerdict stream_check(const StreamPlace *place, const StreamState *state)
{
    if (place->created_us == 0 || place->created_us == state->created_us) {
        return STREAM_SAME;
    }
    if (place->next <= 1) {
        return STREAM_RENAMED; // nothing was read, so nothing can be missing
    }
    if (place->next > state->last + 1) {
        return STREAM_OTHER;
    }
    // All that was read is gone by age, and no more than that; one that was made since begins at 1.
    bool begins_here = state->first == place->next;
    if (was_there(place, state) || begins_here) {
        return STREAM_RENAMED;
    }
    if (place->last_at_us != 0 && state->first < place->next) {
        return STREAM_LOOK;
    }
    return state->last_per_subject ? STREAM_AGAIN : STREAM_OTHER;
}
