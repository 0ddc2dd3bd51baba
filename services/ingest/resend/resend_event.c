// SPDX-License-Identifier: Apache-2.0
#include "services/ingest/resend/resend_event.h"

#include "common/base/id.h"
#include "common/names/member.h"

// Absent, or null: empty.
static bool read_text(
    const json_t *data, const char *field, size_t len_max, Arena *arena, Str *ret, Error *err)
{
    const json_t *value = member_value(data, field);
    *ret = STR_EMPTY;
    if (value == NULL) {
        return true;
    }
    Str text = str_of(json_string_value(value), json_string_length(value));
    if (!json_is_string(value) || text.len > len_max || str_has_control(text)) {
        return error_set(
            err, ERROR_PERMANENT,
            "field '%s': must be a string of at most %zu bytes without control characters", field,
            len_max);
    }
    *ret = arena_str(arena, text);
    return true;
}

static bool read_flag(const json_t *data, const char *field, bool *ret, Error *err)
{
    const json_t *value = member_find(data, str_from(field));
    *ret = json_is_true(value);
    return value == NULL || json_is_boolean(value) ||
           error_set(err, ERROR_PERMANENT, "field '%s': must be true or false", field);
}

// Absent, null or 0: none.
static bool read_sequence(const json_t *data, uint64_t *ret, Error *err)
{
    const json_t *value = member_value(data, "dead_letter");
    *ret = (uint64_t)json_integer_value(value);
    return value == NULL || (json_is_integer(value) && json_integer_value(value) >= 0) ||
           error_set(
               err, ERROR_PERMANENT,
               "field 'dead_letter': must be the sequence of a dead letter, a whole number");
}

static bool read_data(const json_t *data, Arena *arena, ResendRequest *item, Error *err)
{
    int64_t created_ms = 0;
    if (!read_text(data, "notification_id", ID_SIZE, arena, &item->notification_id, err) ||
        !read_text(
            data, "requested_by", RESEND_REQUESTED_BY_MAX, arena, &item->requested_by, err) ||
        !read_flag(data, "may_double", &item->may_double, err) ||
        !read_flag(data, "ignore_expiry", &item->ignore_expiry, err) ||
        !read_sequence(data, &item->dead_letter, err)) {
        return false;
    }
    if (item->dead_letter > 0 && item->notification_id.len == 0) {
        return true;
    }
    if (!id_parse(item->notification_id, "ntf_", &created_ms)) {
        return error_set(
            err, ERROR_PERMANENT,
            "field 'notification_id': must be the id of a notification: 'ntf_' and a ULID");
    }
    item->created_us = created_ms * 1000;
    return true;
}

bool resend_event_read(const DomainInput *input, Arena *arena, ResendRequest *ret, Error *err)
{
    DomainEvent event;
    if (!domain_event_read(input, arena, &event, err)) {
        return false;
    }
    ResendRequest item = {.tenant = event.tenant, .identity = event.identity};
    bool ok = read_data(event.data, arena, &item, err);
    item.letter = ok ? domain_event_letter(&event, STR_EMPTY, arena) : STR_EMPTY;
    domain_event_free(&event);
    if (ok) {
        *ret = item;
    }
    return ok;
}
