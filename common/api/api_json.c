// SPDX-License-Identifier: Apache-2.0
#include "common/api/api_json.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unicode/ucal.h>

#include "common/base/clock.h"
#include "common/base/json_scan.h"
#include "common/json/json_read.h"
#include "common/json/json_write.h"

static bool fail_whole(ApiBody *body, const char *slug, const char *title)
{
    body->problem.status = 400;
    body->problem.slug = slug;
    body->problem.title = title;
    return false;
}

json_t *api_json_load(Str text, size_t flags, json_error_t *ret_error)
{
    json_t *plain = json_read_plain(text, flags);
    if (plain != NULL) {
        return plain;
    }
    JsonExcess excess;
    if (json_is_modest(text, &excess)) {
        json_t *value = json_loadb(text.ptr, text.len, flags, ret_error);
        if (value == NULL && json_error_code(ret_error) == json_error_null_character) {
            // Its own words are about a flag; the last byte of the text is the code.
            (void)snprintf(
                ret_error->text, sizeof ret_error->text - 1,
                "a text has a NUL character (\\u0000), which no text may have");
        }
        return value;
    }
    *ret_error = (json_error_t){.line = excess.line, .column = excess.column};
    (void)snprintf(ret_error->text, sizeof ret_error->text - 1, "%s", excess.what);
    return NULL;
}

Str api_json_canonical(const json_t *value, Arena *arena)
{
    return json_text(value, JSON_SORT_KEYS, arena);
}

bool api_body_parse(ApiBody *body, Str text, Arena *arena)
{
    *body = (ApiBody){.arena = arena, .at = ""};
    json_error_t error;
    json_t *root = api_json_load(text, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    if (root == NULL) {
        bool utf8 = json_error_code(&error) == json_error_invalid_utf8;
        (void)snprintf(
            body->problem.detail, sizeof body->problem.detail, "line %d, column %d: %.120s",
            error.line, error.column, utf8 ? "not valid UTF-8" : error.text);
        return fail_whole(body, "malformed-json", "The body is not valid JSON");
    }
    if (!json_is_object(root)) {
        json_decref(root);
        (void)snprintf(body->problem.detail, sizeof body->problem.detail, "must be an object");
        return fail_whole(body, "invalid-body", "The body is not valid");
    }
    body->root = root;
    return true;
}

ApiBody api_body_inside(const ApiBody *outer, json_t *object, const char *at)
{
    return (ApiBody){
        .arena = outer->arena, .root = json_incref(object), .problem = outer->problem, .at = at};
}

void api_body_free(ApiBody *body)
{
    json_decref(body->root);
    body->root = NULL;
}

bool api_body_fail(ApiBody *body, const char *field, const char *format, ...)
{
    char name[sizeof body->problem.field];
    char detail[sizeof body->problem.detail];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(detail, sizeof detail, format, args);
    va_end(args);
    (void)snprintf(name, sizeof name, "%s%.40s", body->at, field);
    problem_add(&body->problem, body->arena, name, detail);
    return false;
}

bool api_body_good(const ApiBody *body)
{
    return body->problem.status == 0;
}

bool api_has(const ApiBody *body, const char *name)
{
    return json_object_get(body->root, name) != NULL;
}

// The value, the body's no more; NULL: not there. The caller drops it.
static json_t *take(ApiBody *body, const char *name)
{
    json_t *value = json_incref(json_object_get(body->root, name));
    if (value == NULL) {
        return NULL;
    }
    (void)json_object_del(body->root, name);
    if (json_is_null(value)) {
        json_decref(value);
        return NULL;
    }
    return value;
}

static bool check_text(ApiBody *body, const char *name, const json_t *value, size_t max, Str *ret)
{
    if (!json_is_string(value)) {
        return api_body_fail(body, name, "must be a string");
    }
    Str text = str_of(json_string_value(value), json_string_length(value));
    if (text.len > max) {
        return api_body_fail(body, name, "%zu bytes; at most %zu", text.len, max);
    }
    if (memchr(text.ptr, '\0', text.len) != NULL) {
        return api_body_fail(body, name, "holds a NUL character");
    }
    *ret = arena_str(body->arena, text);
    return true;
}

bool api_read_text(ApiBody *body, const char *name, size_t max, Str *ret)
{
    json_t *value = take(body, name);
    bool ok = value == NULL || check_text(body, name, value, max, ret);
    json_decref(value);
    return ok;
}

bool api_read_bool(ApiBody *body, const char *name, bool *ret)
{
    json_t *value = take(body, name);
    if (value == NULL) {
        return true;
    }
    bool ok = json_is_boolean(value);
    *ret = ok ? json_is_true(value) : *ret;
    json_decref(value);
    return ok || api_body_fail(body, name, "must be true or false");
}

bool api_read_int(ApiBody *body, const char *name, int64_t min, int64_t max, int64_t *ret)
{
    json_t *value = take(body, name);
    if (value == NULL) {
        return true;
    }
    int64_t number = json_integer_value(value);
    bool ok = json_is_integer(value) && number >= min && number <= max;
    *ret = ok ? number : *ret;
    json_decref(value);
    return ok || api_body_fail(
                     body, name, "must be a whole number from %lld to %lld", (long long)min,
                     (long long)max);
}

bool api_read_time(ApiBody *body, const char *name, int64_t *ret_us)
{
    Str text = {NULL, 0}; // not STR_EMPTY: "" is a value, and none that is a time
    int64_t at_us = 0;
    if (!api_read_text(body, name, 64, &text)) {
        return false;
    }
    if (text.ptr == NULL) {
        return true;
    }
    if (!clock_parse(text, &at_us)) {
        return api_body_fail(body, name, "not a time such as '2026-11-20T18:25:36Z' (RFC 3339)");
    }
    *ret_us = at_us;
    return true;
}

static bool parse_minute(Str text, uint32_t *ret)
{
    const char *t = text.ptr;
    if (text.len != 5 || !ascii_is_digit(t[0]) || !ascii_is_digit(t[1]) || t[2] != ':' ||
        !ascii_is_digit(t[3]) || !ascii_is_digit(t[4])) {
        return false;
    }
    uint32_t hour = (uint32_t)(t[0] - '0') * 10 + (uint32_t)(t[1] - '0');
    uint32_t minute = (uint32_t)(t[3] - '0') * 10 + (uint32_t)(t[4] - '0');
    *ret = hour * 60 + minute;
    return hour < 24 && minute < 60;
}

bool api_read_minute(ApiBody *body, const char *name, uint32_t *ret_minute)
{
    Str text = {NULL, 0};
    uint32_t minute = 0;
    if (!api_read_text(body, name, 16, &text)) {
        return false;
    }
    if (text.ptr == NULL) {
        return true;
    }
    if (!parse_minute(text, &minute)) {
        return api_body_fail(body, name, "not a time of day such as '22:30'");
    }
    *ret_minute = minute;
    return true;
}

// The value stays alive: the arena holds no JSON, so it is given back to the object under a name
// that no field has.
static void keep(ApiBody *body, const char *name, json_t *value)
{
    (void)json_object_set_new(body->root, arena_printf(body->arena, "\x01%s", name), value);
}

bool api_read_array(ApiBody *body, const char *name, size_t max, json_t **ret)
{
    json_t *value = take(body, name);
    if (value == NULL) {
        return true;
    }
    bool array = json_is_array(value);
    size_t count = json_array_size(value);
    if (array && count <= max) {
        *ret = value;
    }
    keep(body, name, value);
    if (!array) {
        return api_body_fail(body, name, "must be an array");
    }
    return count <= max || api_body_fail(body, name, "%zu entries; at most %zu", count, max);
}

bool api_read_object(ApiBody *body, const char *name, json_t **ret)
{
    json_t *value = take(body, name);
    if (value == NULL) {
        return true;
    }
    bool object = json_is_object(value);
    *ret = object ? value : *ret;
    keep(body, name, value);
    return object || api_body_fail(body, name, "must be an object");
}

bool api_body_end(ApiBody *body)
{
    const char *name = NULL;
    json_t *value = NULL;
    json_object_foreach(body->root, name, value)
    {
        if (name[0] != '\x01') {
            (void)api_body_fail(body, name, "unknown field");
        }
    }
    return api_body_good(body);
}

bool api_body_inside_end(ApiBody *outer, ApiBody *inside)
{
    (void)api_body_end(inside);
    outer->problem = inside->problem;
    api_body_free(inside);
    return outer->problem.status == 0;
}

// ---- language, zone, quiet hours ----

bool api_is_zone(Str name)
{
    UChar wide[API_ZONE_MAX];
    UChar canonical[2 * API_ZONE_MAX];
    if (name.len == 0 || name.len > API_ZONE_MAX) {
        return false;
    }
    for (size_t i = 0; i < name.len; i++) {
        unsigned char c = (unsigned char)name.ptr[i];
        if (c <= 0x20 || c >= 0x7f) {
            return false;
        }
        wide[i] = c;
    }
    UBool known = 0;
    UErrorCode status = U_ZERO_ERROR;
    (void)ucal_getCanonicalTimeZoneID(
        wide, (int32_t)name.len, canonical, 2 * API_ZONE_MAX, &known, &status);
    // ICU's own short names ("BST", which is Dhaka there) are none.
    bool proper = str_find(name, '/') >= 0 || str_eq(name, STR("UTC"));
    return U_SUCCESS(status) && known && proper;
}

bool api_is_locale(Str tag)
{
    size_t run = 0;
    if (tag.len == 0 || tag.len > API_LOCALE_MAX) {
        return false;
    }
    for (size_t i = 0; i < tag.len; i++) {
        char c = tag.ptr[i];
        bool letter = ascii_is_letter(c);
        bool digit = c >= '0' && c <= '9';
        if (c == '-' ? run == 0 : !letter && !digit) {
            return false;
        }
        run = c == '-' ? 0 : run + 1;
        if (run > 8) {
            return false;
        }
    }
    return run > 0;
}

bool api_read_quiet_hours(
    ApiBody *body, const char *name, bool *ret_given, uint32_t *ret_start, uint32_t *ret_end)
{
    json_t *object = NULL;
    *ret_given = false;
    if (!api_read_object(body, name, &object) || object == NULL) {
        return api_body_good(body);
    }
    ApiBody inside =
        api_body_inside(body, object, arena_printf(body->arena, "%s%s.", body->at, name));
    const uint32_t unsaid = UINT32_MAX;
    *ret_start = unsaid;
    *ret_end = unsaid;
    bool start = api_read_minute(&inside, "start", ret_start);
    bool end = api_read_minute(&inside, "end", ret_end);
    if (start && *ret_start == unsaid) {
        (void)api_body_fail(&inside, "start", "required");
    }
    if (end && *ret_end == unsaid) {
        (void)api_body_fail(&inside, "end", "required");
    }
    *ret_given = true;
    return api_body_inside_end(body, &inside);
}
