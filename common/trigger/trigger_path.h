// SPDX-License-Identifier: Apache-2.0
// Paths into an event's data: "guest.email", "guests.0.id". Names and array positions, joined by
// dots; a name in any of its spellings (common/names/member.h). Also the dates that are found there. Pure.
#pragma once

#include <jansson.h>

#include "common/base/arena.h"
#include "common/base/error.h"
#include "common/model/zone.h"

enum { PATH_MAX_BYTES = 128, PATH_DEPTH_MAX = 16, PATH_TEXT_MAX = 1024 };

// 1 to PATH_MAX_BYTES of UTF-8 without control characters, at most PATH_DEPTH_MAX parts, none
// empty.
bool path_is(Str path);
// What stands there, borrowed from `data`; NULL: nothing, or null.
const json_t *path_find(const json_t *data, Str path);
// A string, or a whole number or a boolean in its JSON form, at most PATH_TEXT_MAX bytes, not
// empty, without NUL; lives in `arena`. ERROR_PERMANENT names the path and what is there instead.
bool path_text(const json_t *data, Str path, Arena *arena, Str *ret, Error *err);
// An instant: RFC 3339; without a zone ("2026-12-24T15:00:00") by the wall of `zone` (NULL: UTC); a
// date alone is its midnight there. ERROR_PERMANENT as above.
bool path_time(const json_t *data, Str path, Zone *zone, int64_t *ret_us, Error *err);
// The same for a text.
bool path_time_of(Str text, Zone *zone, int64_t *ret_us);
