// SPDX-License-Identifier: Apache-2.0
#include "common/request/consent.h"

#include <string.h>

#include "common/base/clock.h"

static const int64_t clock_ahead_us = INT64_C(60000000);

bool consent_check(Str source, int64_t at_us, int64_t now_us, FieldError *err)
{
    if (source.len == 0 && at_us == 0) {
        return true;
    }
    if (source.len == 0) {
        return field_error(err, "consent.source", "required: where the consent was given");
    }
    if (at_us == 0) {
        return field_error(err, "consent.given_at", "required: when the consent was given");
    }
    if (at_us < 0 || at_us > now_us + clock_ahead_us) {
        return field_error(err, "consent.given_at", "in the future, or before 1970");
    }
    if (source.len > CONSENT_SOURCE_MAX) {
        return field_error(err, "consent.source", "longer than %d bytes", (int)CONSENT_SOURCE_MAX);
    }
    if (str_find(source, '@') >= 0) {
        return field_error(
            err, "consent.source",
            "holds an '@': name the form or the list, not the address; it is kept in clear");
    }
    return !str_has_control(source) ||
           field_error(err, "consent.source", "has a line break or another control character");
}

static bool read_field(
    const char *name, const json_t *value, Arena *arena, Str *source, int64_t *at_us,
    FieldError *err)
{
    Str text = str_of(json_string_value(value), json_string_length(value));
    if (strcmp(name, "source") == 0) {
        *source = arena_str(arena, text);
        return json_is_string(value) || field_error(err, "consent.source", "must be a string");
    }
    if (strcmp(name, "given_at") == 0) {
        return (json_is_string(value) && clock_parse(text, at_us)) ||
               field_error(
                   err, "consent.given_at", "not a time such as '2026-11-20T18:25:36Z' (RFC 3339)");
    }
    return field_error(err, "consent", "unknown field '%.40s'", name);
}

bool consent_read(
    const json_t *value, Arena *arena, Str *ret_source, int64_t *ret_at_us, FieldError *err)
{
    Str source = STR_EMPTY;
    int64_t at_us = 0;
    if (!json_is_object(value)) {
        return field_error(err, "consent", "must be {\"source\", \"given_at\"}");
    }
    const char *name = NULL;
    json_t *part = NULL;
    json_object_foreach((json_t *)(uintptr_t)value, name, part)
    {
        if (!read_field(name, part, arena, &source, &at_us, err)) {
            return false;
        }
    }
    if (source.len == 0) {
        return field_error(err, "consent.source", "required: where the consent was given");
    }
    *ret_source = source;
    *ret_at_us = at_us;
    return true;
}
