// SPDX-License-Identifier: Apache-2.0
// Bodies of the API that are one JSON object: taken field by field, each with its type, and nothing
// left over. Every fault is kept, so a reader goes on after one, takes every field that there is,
// and asks once at the end. Pure.
#pragma once

#include <jansson.h>

#include "common/request/request.h"

enum { API_ZONE_MAX = 64, API_LOCALE_MAX = 35 }; // bytes

typedef struct ApiBody {
    Arena *arena;    // the texts that are taken live in it
    json_t *root;    // owned; NULL: not an object
    Problem problem; // status 0: none so far
    const char *at;  // prefix of the field names: "addresses[2]."; empty at the top
} ApiBody;

// ERROR in body->problem when it is not one JSON object (400, with line and column). Free it either
// way.
// json_loadb() for what a caller sent: a text that would be too much once parsed is refused as one
// that is no JSON.
json_t *api_json_load(Str text, size_t flags, json_error_t *ret_error);
bool api_body_parse(ApiBody *body, Str text, Arena *arena);
// The same text for the same value: no white space, members in the order of their names, one way to
// escape. 1 and 1.0 differ. It lives in the arena.
Str api_json_canonical(const json_t *value, Arena *arena);
// One object inside of another; `at` lives in the arena. End it by api_body_inside_end, which hands
// its problem to the outer one, frees it, and is false when there is a problem.
ApiBody api_body_inside(const ApiBody *outer, json_t *object, const char *at);
bool api_body_inside_end(ApiBody *outer, ApiBody *inside);
void api_body_free(ApiBody *body);

// Each takes the field out of the object. Not there (or null): *ret stays as it is, and true. Of
// the wrong type or out of its range: the problem is set, false.
bool api_read_text(ApiBody *body, const char *name, size_t max, Str *ret);
bool api_read_bool(ApiBody *body, const char *name, bool *ret);
bool api_read_int(ApiBody *body, const char *name, int64_t min, int64_t max, int64_t *ret);
bool api_read_time(ApiBody *body, const char *name, int64_t *ret_us);        // RFC 3339
bool api_read_minute(ApiBody *body, const char *name, uint32_t *ret_minute); // "22:30"
// {"start": "22:00", "end": "07:00"}; *ret_given false: not there.
bool api_read_quiet_hours(
    ApiBody *body, const char *name, bool *ret_given, uint32_t *ret_start, uint32_t *ret_end);
// Borrowed from the body; NULL stays when it is not there.
bool api_read_array(ApiBody *body, const char *name, size_t max, json_t **ret);
bool api_read_object(ApiBody *body, const char *name, json_t **ret);
bool api_has(const ApiBody *body, const char *name); // not taken yet; null counts

bool api_is_zone(Str name);  // an IANA zone that ICU knows
bool api_is_locale(Str tag); // of the form of a BCP 47 tag

bool api_body_good(const ApiBody *body); // nothing is wrong so far
// A problem of a field, 422, the first or one more; returns false.
bool api_body_fail(ApiBody *body, const char *field, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// What is left is unknown, and a fault each. false: something is wrong, here or before.
bool api_body_end(ApiBody *body);
