// SPDX-License-Identifier: Apache-2.0
#include "services/cli/rebuild/rebuild_log.h"

#include <jansson.h>
#include <string.h>

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
        arena_printf(rebuild->cli->arena, "$JS.API.STREAM.INFO.%s", rebuild->stream_names[index]);
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
               rebuild->stream_names[index]);
}

bool rebuild_ask_streams(Rebuild *rebuild, Error *err)
{
    for (int i = 0; i < rebuild->stream_count; i++) {
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
            &rebuild->session, rebuild->cli->arena, rebuild->stream_names[index], &place, &state,
            &same, err)) {
        return false;
    }
    if (same && place.created_us != 0) {
        live->stream_created_us[index] = info->created_us;
    }
    return true;
}

bool rebuild_recognise_streams(Rebuild *rebuild, RebuildPositions *live, Error *err)
{
    for (int i = 0; i < rebuild->stream_count; i++) {
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

// A stream's log: the stream, or segments and stream.
typedef struct Beginning {
    int64_t at_us;  // every event that is missing was stored before it; 0: none is
    uint64_t first; // from here on nothing may be missing
    LogHole hole;   // the reason, where it has one
} Beginning;

static bool is_extent_of(
    Rebuild *rebuild, int index, const LogExtent *extent, bool *ret, Error *err)
{
    const StreamInfo *info = &rebuild->streams[index];
    StreamPlace place = {extent->created_us, extent->last + 1, extent->last_at_us};
    StreamState state = {info->created_us, info->first, info->last, false};
    *ret = false;
    return extent->last == 0 || extent->behind.reason[0] != '\0' ||
           stream_same(
               &rebuild->session, rebuild->cli->arena, rebuild->stream_names[index], &place, &state,
               ret, err);
}

// `ret` is what the stream alone holds.
static bool add_segments(Rebuild *rebuild, int index, Beginning *ret, Error *err)
{
    const StreamInfo *info = &rebuild->streams[index];
    LogExtent extent;
    bool joins;
    if (!log_catalog_extent(
            rebuild->log.past.catalog, rebuild->stream_names[index], &extent, err) ||
        !is_extent_of(rebuild, index, &extent, &joins, err)) {
        return false;
    }
    const LogHole *hole = joins ? &extent.before : &extent.behind;
    bool recreated = strcmp(hole->reason, "recreated") == 0;
    if (ret->at_us == 0 && !recreated) {
        return true;
    }
    ret->hole = *hole;
    if (!joins) {
        ret->at_us = recreated && info->created_us > ret->at_us ? info->created_us : ret->at_us;
        return true;
    }
    if (info->first <= extent.last + 1) {
        ret->at_us = hole->reason[0] != '\0' ? extent.first_at_us : 0;
        ret->first = extent.last + 1;
    }
    return true;
}

static bool find_beginning(
    Rebuild *rebuild, int index, int64_t folded_created_us, Beginning *ret, Error *err)
{
    const StreamInfo *info = &rebuild->streams[index];
    *ret = (Beginning){.at_us = rebuild_beginning(info, folded_created_us), .first = info->first};
    return !rebuild->log.open || add_segments(rebuild, index, ret, err);
}

static bool refuse_beginning(
    const Rebuild *rebuild, int index, const RebuildPositions *live, const Beginning *beginning,
    Error *err)
{
    static const char carry[] =
        "older rows would be lost (HINT: --carry-older copies them from the live tables)";
    const char *stream = rebuild->stream_names[index];
    const LogHole *hole = &beginning->hole;
    if (hole->reason[0] != '\0') {
        return error_set(
            err, ERROR_CONFIG,
            "the log of '%s' has a hole: messages %llu to %llu are in no segment (%s): %s", stream,
            (unsigned long long)hole->first, (unsigned long long)hole->last, hole->reason, carry);
    }
    bool gaps = has_gaps(&rebuild->streams[index], live->stream_created_us[index]);
    char since[CLOCK_RFC3339_SIZE];
    clock_format(beginning->at_us, since);
    return error_set(
        err, ERROR_CONFIG, "the log of '%s' %s %s: %s", stream,
        gaps ? "has gaps before" : "begins at", since, carry);
}

bool rebuild_find_beginning(
    Rebuild *rebuild, const RebuildPositions *live, int64_t *ret_us, Error *err)
{
    Beginning latest = {0};
    int latest_index = 0;
    for (int i = 0; i < rebuild->stream_count; i++) {
        Beginning beginning;
        if (!find_beginning(rebuild, i, live->stream_created_us[i], &beginning, err)) {
            return false;
        }
        rebuild->first[i] = beginning.first;
        if (beginning.at_us > latest.at_us) {
            latest = beginning;
            latest_index = i;
        }
    }
    *ret_us = latest.at_us != 0 ? latest.at_us + CARRY_MARGIN_US : 0;
    return latest.at_us == 0 || rebuild->carry ||
           refuse_beginning(rebuild, latest_index, live, &latest, err);
}
