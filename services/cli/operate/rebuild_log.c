// SPDX-License-Identifier: Apache-2.0
#include "services/cli/operate/rebuild_log.h"

#include <jansson.h>

#include "common/base/clock.h"
#include "services/cli/operate/stream_same.h"

static int64_t read_time(const json_t *object, const char *name)
{
    int64_t at_us = 0;
    const char *text = json_string_value(json_object_get(object, name));
    // The zero time of an empty stream is before 1970.
    return text != NULL && clock_parse(str_from(text), &at_us) ? at_us : 0;
}

static bool ask_stream(Rebuild *rebuild, int index, Error *err)
{
    Str reply;
    const char *subject =
        arena_printf(rebuild->cli->arena, "$JS.API.STREAM.INFO.%s", history_streams[index]);
    if (!session_request(&rebuild->session, subject, STR_EMPTY, rebuild->cli->arena, &reply, err)) {
        return false;
    }
    json_t *root = json_loadb(reply.ptr, reply.len, 0, NULL);
    const json_t *state = json_object_get(root, "state");
    StreamInfo *info = &rebuild->streams[index];
    *info = (StreamInfo){
        .first = (uint64_t)json_integer_value(json_object_get(state, "first_seq")),
        .last = (uint64_t)json_integer_value(json_object_get(state, "last_seq")),
        .count = (uint64_t)json_integer_value(json_object_get(state, "messages")),
        .deleted = (uint64_t)json_integer_value(json_object_get(state, "num_deleted")),
        .first_at_us = read_time(state, "first_ts"),
        .last_at_us = read_time(state, "last_ts"),
        .created_us = read_time(root, "created")};
    json_decref(root);
    return state != NULL ||
           error_set(
               err, ERROR_CONFIG, "there is no stream '%s' (HINT: stentor migrate)",
               history_streams[index]);
}

bool rebuild_ask_streams(Rebuild *rebuild, Error *err)
{
    uv_update_time(&rebuild->session.loop); // Postgres has blocked it: no request is late by that
    for (int i = 0; i < HISTORY_STREAM_COUNT; i++) {
        if (!ask_stream(rebuild, i, err)) {
            return false;
        }
    }
    return true;
}

// The archiver's own question: another creation time need not be another stream.
static bool recognise_stream(Rebuild *rebuild, RebuildPositions *live, int index, Error *err)
{
    const StreamInfo *info = &rebuild->streams[index];
    StreamPlace place = {
        live->stream_created_us[index], live->sequence[index] + 1, live->stored_at_us[index]};
    StreamState state = {info->created_us, info->first, info->last, false};
    bool same = false;
    if (!stream_same(
            &rebuild->session, rebuild->cli->arena, history_streams[index], &place, &state, &same,
            err)) {
        return false;
    }
    if (same && place.created_us != 0) {
        live->stream_created_us[index] = info->created_us;
    }
    return true;
}

bool rebuild_recognise_streams(Rebuild *rebuild, RebuildPositions *live, Error *err)
{
    for (int i = 0; i < HISTORY_STREAM_COUNT; i++) {
        if (!recognise_stream(rebuild, live, i, err)) {
            return false;
        }
    }
    return true;
}

int64_t rebuild_beginning(const StreamInfo *info, int64_t folded_created_us)
{
    if (folded_created_us != 0 && folded_created_us != info->created_us) {
        return info->created_us; // made again: what was folded was of the former one
    }
    if (info->first <= 1 && info->deleted == 0) {
        return 0;
    }
    bool holds_rest = info->count > 0 && info->deleted == 0;
    int64_t at_us = holds_rest ? info->first_at_us : info->last_at_us;
    return at_us != 0 ? at_us : clock_now_us();
}

// Messages within the stream are gone, so that it is unknown when the last of them was stored.
static bool has_gaps(const StreamInfo *info, int64_t folded_created_us)
{
    bool made_anew = folded_created_us != 0 && folded_created_us != info->created_us;
    return !made_anew && info->deleted > 0;
}

bool rebuild_find_beginning(
    const Rebuild *rebuild, const RebuildPositions *live, int64_t *ret_us, Error *err)
{
    int64_t latest_us = 0;
    const char *stream = "";
    bool gaps = false;
    for (int i = 0; i < HISTORY_STREAM_COUNT; i++) {
        int64_t at_us = rebuild_beginning(&rebuild->streams[i], live->stream_created_us[i]);
        if (at_us > latest_us) {
            latest_us = at_us;
            stream = history_streams[i];
            gaps = has_gaps(&rebuild->streams[i], live->stream_created_us[i]);
        }
    }
    *ret_us = latest_us != 0 ? latest_us + CARRY_MARGIN_US : 0;
    if (latest_us == 0 || rebuild->carry) {
        return true;
    }
    char since[CLOCK_RFC3339_SIZE];
    clock_format(latest_us, since);
    return error_set(
        err, ERROR_CONFIG,
        "the log of '%s' %s %s: older rows would be lost (HINT: "
        "--carry-older copies them from the live tables)",
        stream, gaps ? "has gaps before" : "begins at", since);
}
