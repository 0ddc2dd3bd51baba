// SPDX-License-Identifier: Apache-2.0
// Reads "moments", "keep" and "retries".
#include <stdio.h>
#include <string.h>

#include "common/outbox/mapping/mapping_read.h"

enum { PATH_SIZE = 160, ASSIGNS_MAX = 16 };

enum { FOR_EVENT = 1, FOR_REQUEST = 2, HAS_REASON = 4, HAS_ATTEMPTS = 8, HAS_KEEP = 16 };

// clang-format off
static const struct {
    const char *name;
    int use;
} MOMENTS[MOMENT_COUNT] = {
    [MOMENT_CLAIMED]     = {"claimed",     FOR_EVENT | FOR_REQUEST},
    [MOMENT_PUBLISHED]   = {"published",   FOR_EVENT | FOR_REQUEST | HAS_KEEP},
    [MOMENT_UNPUBLISHED] = {"unpublished", FOR_EVENT | FOR_REQUEST | HAS_REASON},
    [MOMENT_REFUSED]     = {"refused",     FOR_EVENT | FOR_REQUEST | HAS_REASON},
    [MOMENT_RETRYING]    = {"retrying",    FOR_REQUEST | HAS_REASON | HAS_ATTEMPTS},
    [MOMENT_SENT]        = {"sent",        FOR_REQUEST | HAS_REASON | HAS_ATTEMPTS | HAS_KEEP},
    [MOMENT_FAILED]      = {"failed",      FOR_REQUEST | HAS_REASON | HAS_ATTEMPTS | HAS_KEEP},
};

static const struct {
    const char *word;
    AssignKind kind;
} WORDS[] = {
    {"@now",       ASSIGN_NOW},
    {"@at",        ASSIGN_AT},
    {"@reason",    ASSIGN_REASON},
    {"@attempts",  ASSIGN_ATTEMPTS},
    {"@increment", ASSIGN_INCREMENT},
};
// clang-format on

const char *moment_name(MappingMoment moment)
{
    return MOMENTS[moment].name;
}

// ---- assignments ----

static bool read_name(MappingReader *r, Str text, const char *path, Assign *ret)
{
    for (size_t i = 0; i < sizeof WORDS / sizeof WORDS[0]; i++) {
        if (str_eq(text, str_from(WORDS[i].word))) {
            ret->kind = WORDS[i].kind;
            return true;
        }
    }
    return mapping_wrong(
        r, path,
        "'%.*s' must be one of @now @at @reason @attempts @increment (write text that begins with "
        "'@' as '@@...')",
        STR_ARG(str_slice(text, 0, 40)));
}

static bool read_value(
    MappingReader *r, const json_t *value, const char *path, bool only_values, Assign *ret)
{
    Str text = mapping_text(value);
    ret->kind = json_is_null(value) ? ASSIGN_NULL : ASSIGN_LITERAL;
    if (json_is_null(value)) {
        return true;
    }
    if (json_is_boolean(value)) {
        ret->text = json_is_true(value) ? STR("true") : STR("false");
    } else if (json_is_integer(value)) {
        ret->text =
            str_from(arena_printf(r->arena, "%" JSON_INTEGER_FORMAT, json_integer_value(value)));
    } else if (!json_is_string(value) || memchr(text.ptr, '\0', text.len) != NULL) {
        return mapping_wrong(r, path, "must be text, a whole number, true, false or null");
    } else if (text.len > 0 && text.ptr[0] == '@' && !only_values) {
        bool escaped = text.len > 1 && text.ptr[1] == '@';
        ret->text = str_slice(text, 1, text.len);
        return escaped || read_name(r, text, path, ret);
    } else {
        ret->text = text;
    }
    return true;
}

bool mapping_assigns(
    MappingReader *r, const json_t *object, const char *path, bool only_values, Assigns *ret)
{
    size_t count = json_object_size(object);
    if (!json_is_object(object) || count > ASSIGNS_MAX) {
        return mapping_wrong(
            r, path, "must be an object: {\"column\": value}, at most %d", (int)ASSIGNS_MAX);
    }
    Assign *items = arena_array(r->arena, count, sizeof *items);
    size_t i = 0;
    for (void *it = json_object_iter((json_t *)(uintptr_t)object); it != NULL;
         it = json_object_iter_next((json_t *)(uintptr_t)object, it), i++) {
        char full[PATH_SIZE];
        snprintf(full, sizeof full, "%s.%.60s", path, json_object_iter_key(it));
        json_t *name = json_string(json_object_iter_key(it));
        Str unused = STR_EMPTY;
        bool ok = mapping_column(r, name, full, &unused);
        json_decref(name);
        items[i].column = str_from(json_object_iter_key(it));
        if (!ok || !read_value(r, json_object_iter_value(it), full, only_values, &items[i])) {
            return false;
        }
    }
    *ret = (Assigns){.items = items, .count = count};
    return true;
}

static bool check_constants_of(MappingReader *r, MappingMoment moment)
{
    const Assigns *assigns = &r->mapping->moments[moment];
    int use = MOMENTS[moment].use;
    for (size_t i = 0; i < assigns->count; i++) {
        const Assign *a = &assigns->items[i];
        char path[PATH_SIZE];
        snprintf(path, sizeof path, "moments.%s.%.*s", MOMENTS[moment].name, STR_ARG(a->column));
        if (a->kind == ASSIGN_REASON && (use & HAS_REASON) == 0) {
            return mapping_wrong(r, path, "this moment has no '@reason'");
        }
        if (a->kind == ASSIGN_ATTEMPTS && (use & HAS_ATTEMPTS) == 0) {
            return mapping_wrong(r, path, "this moment has no '@attempts'");
        }
        if (str_eq(a->column, r->mapping->id)) {
            return mapping_wrong(r, path, "is the id column, which is never written");
        }
    }
    return true;
}

static bool read_moment(MappingReader *r, const json_t *moments, MappingMoment moment)
{
    const json_t *value = json_object_get(moments, MOMENTS[moment].name);
    bool request = mapping_is_request(r->mapping);
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "moments.%s", MOMENTS[moment].name);
    if (value == NULL) {
        return true;
    }
    if ((MOMENTS[moment].use & (request ? FOR_REQUEST : FOR_EVENT)) == 0) {
        return mapping_wrong(r, path, "is not for \"event\": only requests have feedback");
    }
    return mapping_assigns(r, value, path, false, &r->mapping->moments[moment]) &&
           check_constants_of(r, moment);
}

bool mapping_moments(MappingReader *r, const json_t *moments)
{
    if (moments == NULL) {
        return true;
    }
    if (!json_is_object(moments)) {
        return mapping_wrong(r, "moments", "must be an object");
    }
    if (!mapping_known(
            r, moments, "moments", "claimed published unpublished refused retrying sent failed")) {
        return false;
    }
    for (int i = 0; i < MOMENT_COUNT; i++) {
        if (!read_moment(r, moments, (MappingMoment)i)) {
            return false;
        }
    }
    return true;
}

// ---- moments that end a row's waiting ----

const Assign *assigns_find(const Assigns *assigns, Str column)
{
    for (size_t i = 0; i < assigns->count; i++) {
        if (str_eq(assigns->items[i].column, column)) {
            return &assigns->items[i];
        }
    }
    return NULL;
}

static bool differs(const Assign *pending, const Assign *written)
{
    if (written->kind == ASSIGN_NULL || pending->kind == ASSIGN_NULL) {
        return written->kind != pending->kind && written->kind != ASSIGN_REASON;
    }
    return written->kind == ASSIGN_LITERAL && !str_eq(written->text, pending->text);
}

bool mapping_takes_out(const Mapping *m, MappingMoment moment)
{
    for (size_t i = 0; i < m->pending.count; i++) {
        const Assign *p = &m->pending.items[i];
        const Assign *w = assigns_find(&m->moments[moment], p->column);
        if (w != NULL && differs(p, w)) {
            return true;
        }
    }
    return false;
}

// What `retrying` does not name stays as `claimed` left it.
bool mapping_retries_as_pending(const Mapping *m)
{
    const Assigns *retrying = &m->moments[MOMENT_RETRYING];
    if (!mapping_takes_out(m, MOMENT_CLAIMED)) {
        return false; // such rows are never claimed while their request is open
    }
    for (size_t i = 0; i < m->pending.count; i++) {
        const Assign *p = &m->pending.items[i];
        const Assign *w = assigns_find(retrying, p->column);
        w = w != NULL ? w : assigns_find(&m->moments[MOMENT_CLAIMED], p->column);
        if (w != NULL && differs(p, w)) {
            return false;
        }
    }
    return true;
}

MappingMoment mapping_refusal(const Mapping *m)
{
    bool own = m->moments[MOMENT_REFUSED].count > 0 || !mapping_is_request(m);
    return own ? MOMENT_REFUSED : MOMENT_FAILED;
}

bool mapping_check_ends(MappingReader *r)
{
    const Mapping *m = r->mapping;
    bool request = mapping_is_request(m);
    if (m->state_count > 0) {
        return m->moments[MOMENT_CLAIMED].count == 0 ||
               mapping_wrong(r, "moments.claimed", "is not for 'states'");
    }
    if (m->moments[MOMENT_CLAIMED].count > 0 && !mapping_takes_out(m, MOMENT_CLAIMED)) {
        return mapping_wrong(
            r, "moments.claimed",
            "leaves the row pending (remove the moment, or let it set a 'pending' column)");
    }
    MappingMoment last = request ? MOMENT_SENT : MOMENT_PUBLISHED;
    if (!mapping_takes_out(m, MOMENT_CLAIMED) && !mapping_takes_out(m, last)) {
        char path[PATH_SIZE];
        snprintf(path, sizeof path, "moments.%s", moment_name(last));
        return mapping_wrong(
            r, path,
            "must set a 'pending' column to another value, or the row would be claimed again and "
            "again");
    }
    return true;
}

// ---- keep ----

// "30d", "12h", "45m", "10s"
static bool read_age(Str text, int64_t *ret_s)
{
    static const struct {
        char unit;
        int64_t seconds;
    } units[] = {{'d', 86400}, {'h', 3600}, {'m', 60}, {'s', 1}};
    int64_t count = 0;
    if (text.len < 2 || text.len > 6 || !str_to_i64(str_slice(text, 0, text.len - 1), &count) ||
        count < 1) {
        return false;
    }
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (text.ptr[text.len - 1] == units[i].unit) {
            *ret_s = count * units[i].seconds;
            return true;
        }
    }
    return false;
}

static bool read_waits(MappingReader *r, const json_t *waits)
{
    Mapping *m = r->mapping;
    size_t count = json_array_size(waits);
    if (!json_is_array(waits) || count == 0 || count > LADDER_MAX) {
        return mapping_wrong(
            r, "retries.waits", "must be a list of 1 to %d spans: [\"5s\", \"15m\"]", LADDER_MAX);
    }
    for (size_t i = 0; i < count; i++) {
        int64_t wait_s = 0;
        if (!read_age(mapping_text(json_array_get(waits, i)), &wait_s) ||
            wait_s > LADDER_WAIT_MAX_S) {
            return mapping_wrong(
                r, "retries.waits", "must be spans of 1 second to 7 days: \"5s\", \"15m\", \"4h\"");
        }
        m->retry_wait_s[m->retry_waits++] = (uint32_t)wait_s;
    }
    return true;
}

bool mapping_retries(MappingReader *r, const json_t *retries)
{
    if (retries == NULL) {
        return true;
    }
    const json_t *most = json_object_get(retries, "max_attempts");
    const json_t *waits = json_object_get(retries, "waits");
    if (!mapping_is_request(r->mapping)) {
        return mapping_wrong(r, "retries", "is not for \"event\": only requests are retried");
    }
    if (!json_is_object(retries) || (most == NULL && waits == NULL)) {
        return mapping_wrong(
            r, "retries", "must be an object: {\"max_attempts\": 5, \"waits\": [\"5s\"]}");
    }
    json_int_t attempts = json_integer_value(most);
    if (most != NULL && (attempts < 1 || attempts > LADDER_MAX + 1)) {
        return mapping_wrong(
            r, "retries.max_attempts", "must be a whole number from 1 to %d", LADDER_MAX + 1);
    }
    r->mapping->max_attempts = (uint32_t)attempts;
    return mapping_known(r, retries, "retries", "max_attempts waits") &&
           (waits == NULL || read_waits(r, waits));
}

static bool find_time(const Assigns *assigns, Str *ret)
{
    static const AssignKind kinds[] = {ASSIGN_AT, ASSIGN_NOW};
    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; i < assigns->count; i++) {
            if (assigns->items[i].kind == kinds[k]) {
                *ret = assigns->items[i].column;
                return true;
            }
        }
    }
    return false;
}

static bool read_keep(MappingReader *r, const json_t *keep, MappingMoment moment)
{
    Mapping *m = r->mapping;
    const json_t *value = json_object_get(keep, MOMENTS[moment].name);
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "keep.%s", MOMENTS[moment].name);
    if (value == NULL) {
        return true;
    }
    MappingKeep *k = &m->keep[m->keep_count++];
    k->moment = moment;
    if (!read_age(mapping_text(value), &k->age_s)) {
        return mapping_wrong(r, path, "must be an age: \"30d\", \"12h\", \"45m\"");
    }
    if ((MOMENTS[moment].use & HAS_KEEP) == 0 || !find_time(&m->moments[moment], &k->column)) {
        return mapping_wrong(
            r, path, "needs a column that 'moments.%s' sets to @at or @now", MOMENTS[moment].name);
    }
    return m->state_count > 0 || mapping_takes_out(m, moment) ||
           mapping_wrong(
               r, path, "'moments.%s' leaves the row pending, and pending rows are not deleted",
               MOMENTS[moment].name);
}

bool mapping_keeps(MappingReader *r, const json_t *keep)
{
    if (keep == NULL) {
        return true;
    }
    if (!json_is_object(keep)) {
        return mapping_wrong(r, "keep", "must be an object: {\"sent\": \"30d\"}");
    }
    if (!mapping_known(r, keep, "keep", "published sent failed")) {
        return false;
    }
    for (int i = 0; i < MOMENT_COUNT; i++) {
        if (!read_keep(r, keep, (MappingMoment)i)) {
            return false;
        }
    }
    return true;
}
