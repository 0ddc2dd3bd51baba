// SPDX-License-Identifier: Apache-2.0
#include "common/trigger/trigger_path.h"

#include <inttypes.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/names/member.h"

enum { DATE_LEN = 10, ZONELESS_MAX = 29 };

bool path_is(Str path)
{
    if (path.len == 0 || path.len > PATH_MAX_BYTES || str_has_control(path) || !str_is_utf8(path) ||
        path.ptr[path.len - 1] == '.') {
        return false;
    }
    Str rest = path;
    Str part = STR_EMPTY;
    int depth = 0;
    while (str_split(&rest, '.', &part)) {
        if (part.len == 0 || ++depth > PATH_DEPTH_MAX) {
            return false;
        }
    }
    return true;
}

static const json_t *step(const json_t *at, Str part)
{
    int64_t index = 0;
    if (json_is_array(at)) {
        bool number = str_to_i64(part, &index) && index >= 0;
        return number ? json_array_get(at, (size_t)index) : NULL;
    }
    return member_find(at, part);
}

const json_t *path_find(const json_t *data, Str path)
{
    const json_t *at = data;
    Str part = STR_EMPTY;
    while (at != NULL && str_split(&path, '.', &part)) {
        at = step(at, part);
    }
    return json_is_null(at) ? NULL : at;
}

static bool nothing_there(Str path, Error *err)
{
    return error_set(
        err, ERROR_PERMANENT, "the event has nothing at path '" STR_FMT "'", STR_ARG(path));
}

static bool copy_string(const json_t *value, Str path, Arena *arena, Str *ret, Error *err)
{
    Str text = str_of(json_string_value(value), json_string_length(value));
    if (text.len == 0) {
        return error_set(
            err, ERROR_PERMANENT, "the text at path '" STR_FMT "' is empty", STR_ARG(path));
    }
    if (text.len > PATH_TEXT_MAX || memchr(text.ptr, '\0', text.len) != NULL) {
        return error_set(
            err, ERROR_PERMANENT,
            "the text at path '" STR_FMT "' is longer than %d bytes or holds a NUL", STR_ARG(path),
            PATH_TEXT_MAX);
    }
    *ret = arena_str(arena, text);
    return true;
}

bool path_text(const json_t *data, Str path, Arena *arena, Str *ret, Error *err)
{
    const json_t *value = path_find(data, path);
    if (value == NULL) {
        return nothing_there(path, err);
    }
    if (json_is_string(value)) {
        return copy_string(value, path, arena, ret, err);
    }
    if (json_is_integer(value)) {
        *ret = str_from(arena_printf(arena, "%" PRId64, (int64_t)json_integer_value(value)));
        return true;
    }
    if (json_is_boolean(value)) {
        *ret = json_is_true(value) ? STR("true") : STR("false");
        return true;
    }
    return error_set(
        err, ERROR_PERMANENT, "what is at path '" STR_FMT "' is neither text nor a whole number",
        STR_ARG(path));
}

// What the wall shows, given as if it were UTC, as an instant.
static int64_t instant_of(Zone *zone, int64_t wall_us)
{
    static const int64_t MINUTE_US = INT64_C(60) * 1000000;
    int64_t minutes = wall_us / MINUTE_US; // clock_parse gives nothing before 1970
    return zone_instant(zone, minutes / MINUTES_OF_DAY, (int32_t)(minutes % MINUTES_OF_DAY)) +
           wall_us % MINUTE_US;
}

bool path_time_of(Str text, Zone *zone, int64_t *ret_us)
{
    if (clock_parse(text, ret_us)) {
        return true;
    }
    if (text.len < DATE_LEN || text.len > ZONELESS_MAX) {
        return false;
    }
    char whole[ZONELESS_MAX + sizeof "T00:00:00Z"];
    const char *end = text.len == DATE_LEN ? "T00:00:00Z" : "Z";
    memcpy(whole, text.ptr, text.len);
    memcpy(whole + text.len, end, strlen(end));
    int64_t wall_us = 0;
    if (!clock_parse(str_of(whole, text.len + strlen(end)), &wall_us)) {
        return false;
    }
    *ret_us = zone == NULL ? wall_us : instant_of(zone, wall_us);
    return true;
}

bool path_time(const json_t *data, Str path, Zone *zone, int64_t *ret_us, Error *err)
{
    const json_t *value = path_find(data, path);
    if (value == NULL) {
        return nothing_there(path, err);
    }
    Str text = str_of(json_string_value(value), json_string_length(value));
    if (!json_is_string(value) || !path_time_of(text, zone, ret_us)) {
        return error_set(
            err, ERROR_PERMANENT,
            "what is at path '" STR_FMT "' is not a date such as '2026-12-24' or a time such as "
            "'2026-12-24T15:00:00Z'",
            STR_ARG(path));
    }
    return true;
}
