// SPDX-License-Identifier: Apache-2.0
#include "common/replay/replay_room.h"

#include <jansson.h>
#include <stdio.h>

#include "common/base/clock.h"

enum { LOOK_US = 1000000, LOOK_TIMEOUT_MS = 5000 };

static int64_t read_time(const json_t *value)
{
    int64_t at_us = 0;
    const char *text = json_string_value(value);
    return text != NULL && clock_parse(str_from(text), &at_us) ? at_us : 0;
}

static bool read_info(ReplayRoom *room, Str reply)
{
    json_t *info = json_loadb(reply.ptr, reply.len, 0, NULL);
    const json_t *state = json_object_get(info, "state");
    const json_t *config = json_object_get(info, "config");
    bool ok = state != NULL && config != NULL;
    if (ok) {
        room->first = (uint64_t)json_integer_value(json_object_get(state, "first_seq"));
        room->last = (uint64_t)json_integer_value(json_object_get(state, "last_seq"));
        int64_t last_at_us = read_time(json_object_get(state, "last_ts"));
        room->last_at_us =
            last_at_us > 0 ? last_at_us : read_time(json_object_get(info, "created"));
        room->used_bytes = json_integer_value(json_object_get(state, "bytes"));
        room->max_bytes = json_integer_value(json_object_get(config, "max_bytes"));
        room->added_bytes = room->asked_bytes;
    }
    json_decref(info);
    return ok;
}

bool replay_room_open(
    ReplayRoom *room, Session *session, const char *stream, Arena *arena, Error *err)
{
    Str reply;
    *room = (ReplayRoom){.session = session, .stream = stream};
    const char *subject = arena_printf(arena, "$JS.API.STREAM.INFO.%s", stream);
    if (!session_request(session, subject, STR_EMPTY, arena, &reply, err)) {
        return false;
    }
    return read_info(room, reply) ||
           error_set(
               err, ERROR_PERMANENT, "stream '%s' does not exist (HINT: run 'stentor migrate')",
               stream);
}

static void on_look_reply(void *ctx, Str reply, const Error *err)
{
    ReplayRoom *room = ctx;
    room->looking = false;
    if (err == NULL) {
        (void)read_info(room, reply); // an unreadable answer leaves what was known
    }
    session_finish(room->session, NULL);
}

void replay_room_look(ReplayRoom *room, int64_t now_us, size_t air_bytes)
{
    if (room->looking || now_us - room->looked_us < LOOK_US) {
        return;
    }
    char subject[128];
    snprintf(subject, sizeof subject, "$JS.API.STREAM.INFO.%s", room->stream);
    room->looking = true;
    room->asked_bytes = (int64_t)air_bytes;
    room->looked_us = now_us;
    bus_request(room->session->bus, subject, STR_EMPTY, LOOK_TIMEOUT_MS, on_look_reply, room);
}

void replay_room_take(ReplayRoom *room, size_t payload_bytes)
{
    room->added_bytes += (int64_t)payload_bytes + REPLAY_COPY_OVERHEAD;
    room->asked_bytes += (int64_t)payload_bytes + REPLAY_COPY_OVERHEAD;
}

bool replay_room_is_there(const ReplayRoom *room)
{
    return room->max_bytes <= 0 ||
           room->used_bytes + room->added_bytes < room->max_bytes / 100 * REPLAY_FILL_PERCENT;
}

bool replay_room_in_vain(ReplayRoom *room, int64_t now_us, Error *err)
{
    if (replay_room_is_there(room)) {
        room->full_since_us = 0;
        return false;
    }
    room->full_since_us = room->full_since_us > 0 ? room->full_since_us : now_us;
    if (now_us - room->full_since_us < REPLAY_ROOM_WAIT_S * INT64_C(1000000)) {
        return false;
    }
    error_set(
        err, ERROR_TRANSIENT,
        "%s is %d %% full; more copies would make it refuse what the pipeline writes (HINT: "
        "continue "
        "later, or 'stentor migrate --bytes-scale-percent')",
        room->stream, REPLAY_FILL_PERCENT);
    return true;
}
