// SPDX-License-Identifier: Apache-2.0
#include "services/cli/operate/stream_same.h"

#include <jansson.h>

#include "common/base/clock.h"

bool stream_stored_at(
    Session *session, Arena *arena, const char *stream, uint64_t sequence, const char *filter,
    int64_t *ret_us, Error *err)
{
    Str reply;
    const char *subject = arena_printf(arena, "$JS.API.STREAM.MSG.GET.%s", stream);
    const char *next =
        filter != NULL ? arena_printf(arena, ",\"next_by_subj\":\"%s\"", filter) : "";
    const char *body = arena_printf(arena, "{\"seq\":%llu%s}", (unsigned long long)sequence, next);
    if (!session_request(session, subject, str_from(body), arena, &reply, err)) {
        return false;
    }
    json_t *root = json_loadb(reply.ptr, reply.len, 0, NULL);
    const char *text = json_string_value(json_object_get(json_object_get(root, "message"), "time"));
    int64_t at_us = 0;
    *ret_us = text != NULL && clock_parse(str_from(text), &at_us) ? at_us : 0;
    json_decref(root);
    return true;
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
