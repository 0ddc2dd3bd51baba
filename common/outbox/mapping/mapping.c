// SPDX-License-Identifier: Apache-2.0
#include "common/outbox/mapping/mapping.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/id.h"
#include "common/outbox/mapping/mapping_read.h"

enum { COLUMN_LEN_MAX = 63, BACKLOG_ALERT = 1000, PATH_SIZE = 160 };

bool mapping_wrong(MappingReader *r, const char *path, const char *format, ...)
{
    char text[200];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return error_set(r->err, ERROR_CONFIG, "%s: %s", path, text);
}

Str mapping_text(const json_t *string)
{
    return json_is_string(string) ? str_of(json_string_value(string), json_string_length(string))
                                  : STR_EMPTY;
}

static bool is_name(Str name)
{
    return name.len > 0 && name.len <= COLUMN_LEN_MAX && !str_has_control(name);
}

bool mapping_column(MappingReader *r, const json_t *value, const char *path, Str *ret)
{
    Str name = mapping_text(value);
    if (!is_name(name)) {
        return mapping_wrong(r, path, "must be a column's name");
    }
    *ret = name;
    return true;
}

// "schema.table" or "table".
static bool mapping_table(MappingReader *r, const json_t *value, const char *path, Str *ret)
{
    Str table = mapping_text(value);
    ptrdiff_t dot = str_find(table, '.');
    Str schema = dot < 0 ? STR("-") : str_slice(table, 0, (size_t)dot);
    Str name = dot < 0 ? table : str_slice(table, (size_t)dot + 1, table.len);
    if (!is_name(schema) || !is_name(name) || str_find(name, '.') >= 0) {
        return mapping_wrong(r, path, "must be a table: 'schema.table'");
    }
    *ret = table;
    return true;
}

static bool is_constant(const char *words, const char *word)
{
    Str rest = str_from(words);
    Str one = STR_EMPTY;
    while (str_split(&rest, ' ', &one)) {
        if (str_eq(one, str_from(word))) {
            return true;
        }
    }
    return false;
}

bool mapping_known(MappingReader *r, const json_t *object, const char *path, const char *members)
{
    const char *dot = path[0] == '\0' ? "" : ".";
    for (void *it = json_object_iter((json_t *)(uintptr_t)object); it != NULL;
         it = json_object_iter_next((json_t *)(uintptr_t)object, it)) {
        const char *key = json_object_iter_key(it);
        if (!is_constant(members, key)) {
            char full[PATH_SIZE];
            snprintf(full, sizeof full, "%s%s%.60s", path, dot, key);
            return mapping_wrong(
                r, full, "is not a member of the mapping (known: %.140s)", members);
        }
    }
    return true;
}

// ---- the members ----

static bool read_name(MappingReader *r, const json_t *root)
{
    Str name = mapping_text(json_object_get(root, "name"));
    if (!id_is_tenant(name)) { // the same form: usable in ids, metrics and a NOTIFY
        return mapping_wrong(r, "name", "must be 1 to 32 of [a-z0-9_-], beginning with a letter");
    }
    r->mapping->name = name;
    return true;
}

static bool read_publish(MappingReader *r, const json_t *root)
{
    Str publish = mapping_text(json_object_get(root, "publish"));
    if (!str_eq(publish, STR("event")) && !str_eq(publish, STR("request"))) {
        return mapping_wrong(r, "publish", "must be \"event\" or \"request\"");
    }
    r->mapping->publish = str_eq(publish, STR("request")) ? MAPPING_REQUEST : MAPPING_EVENT;
    return true;
}

static bool optional_column(MappingReader *r, const json_t *root, const char *name, Str *ret)
{
    const json_t *value = json_object_get(root, name);
    return value == NULL || mapping_column(r, value, name, ret);
}

static bool read_order(MappingReader *r, const json_t *root)
{
    const json_t *value = json_object_get(root, "order_by");
    Mapping *m = r->mapping;
    if (json_is_string(value)) {
        m->order_count = 1;
        return mapping_column(r, value, "order_by", &m->order_by[0]);
    }
    size_t count = json_array_size(value);
    if (count == 0 || count > MAPPING_ORDER_MAX) {
        return mapping_wrong(
            r, "order_by", "must be a list of 1 to %d columns", (int)MAPPING_ORDER_MAX);
    }
    for (size_t i = 0; i < count; i++) {
        if (!mapping_column(r, json_array_get(value, i), "order_by", &m->order_by[i])) {
            return false;
        }
    }
    m->order_count = (int)count;
    return true;
}

static bool read_state_keys(MappingReader *r, const json_t *key, const char *path, MappingState *s)
{
    size_t count = json_object_size(key);
    if (!json_is_object(key) || count == 0 || count > 2) {
        return mapping_wrong(
            r, path, "must be an object of one or two: {\"its column\": \"the outbox's column\"}");
    }
    for (void *it = json_object_iter((json_t *)(uintptr_t)key); it != NULL;
         it = json_object_iter_next((json_t *)(uintptr_t)key, it)) {
        Str name = str_from(json_object_iter_key(it));
        if (!is_name(name)) {
            return mapping_wrong(r, path, "has a name that cannot be a column");
        }
        s->keys[s->key_count] = name;
        if (!mapping_column(r, json_object_iter_value(it), path, &s->rows[s->key_count++])) {
            return false;
        }
    }
    return true;
}

static bool read_state(MappingReader *r, const json_t *state, int index, MappingState *s)
{
    char path[4][PATH_SIZE];
    static const char *const names[] = {"table", "key", "position", "delivered"};
    for (int i = 0; i < 4; i++) {
        snprintf(path[i], PATH_SIZE, "states.%d.%s", index, names[i]);
    }
    char here[PATH_SIZE];
    snprintf(here, sizeof here, "states.%d", index);
    const json_t *delivered = json_object_get(state, "delivered");
    return mapping_known(r, state, here, "table key position delivered") &&
           mapping_table(r, json_object_get(state, "table"), path[0], &s->table) &&
           read_state_keys(r, json_object_get(state, "key"), path[1], s) &&
           mapping_column(r, json_object_get(state, "position"), path[2], &s->position) &&
           (delivered == NULL || mapping_column(r, delivered, path[3], &s->delivered));
}

static bool read_states(MappingReader *r, const json_t *states)
{
    size_t count = json_array_size(states);
    if (count == 0 || count > MAPPING_STATES_MAX) {
        return mapping_wrong(
            r, "states", "must be a list of 1 to %d objects", (int)MAPPING_STATES_MAX);
    }
    for (size_t i = 0; i < count; i++) {
        if (!read_state(r, json_array_get(states, i), (int)i, &r->mapping->states[i])) {
            return false;
        }
    }
    r->mapping->state_count = (int)count;
    if (mapping_is_request(r->mapping)) {
        return mapping_wrong(r, "states", "is for events only");
    }
    if (r->mapping->position.len == 0) {
        return mapping_wrong(r, "position", "is required with 'states'");
    }
    return r->mapping->ordering_key.len == 0 ||
           mapping_wrong(r, "ordering_key", "is not for 'states': rows of one state are in order");
}

static bool read_pending(MappingReader *r, const json_t *root)
{
    const json_t *pending = json_object_get(root, "pending");
    const json_t *states = json_object_get(root, "states");
    if ((pending == NULL) == (states == NULL)) {
        return mapping_wrong(
            r, "pending", "is required: {\"published_at\": null} (or else 'states')");
    }
    if (states != NULL) {
        return read_states(r, states);
    }
    if (!mapping_assigns(r, pending, "pending", true, &r->mapping->pending)) {
        return false;
    }
    return r->mapping->pending.count > 0 || mapping_wrong(r, "pending", "must name a column");
}

static bool read_alert(MappingReader *r, const json_t *root)
{
    const json_t *value = json_object_get(root, "backlog_alert");
    r->mapping->backlog_alert = value == NULL ? BACKLOG_ALERT : json_integer_value(value);
    return r->mapping->backlog_alert > 0 ||
           mapping_wrong(r, "backlog_alert", "must be a whole number of rows above 0");
}

static bool read_members(MappingReader *r, const json_t *root)
{
    Mapping *m = r->mapping;
    return mapping_known(
               r, root, "",
               "about name table publish id order_by ordering_key created_at position pending "
               "states fields moments keep retries backlog_alert") &&
           read_name(r, root) &&
           mapping_table(r, json_object_get(root, "table"), "table", &m->table) &&
           read_publish(r, root) && mapping_column(r, json_object_get(root, "id"), "id", &m->id) &&
           read_order(r, root) && optional_column(r, root, "ordering_key", &m->ordering_key) &&
           optional_column(r, root, "created_at", &m->created_at) &&
           optional_column(r, root, "position", &m->position) && read_pending(r, root) &&
           mapping_fields(r, json_object_get(root, "fields")) &&
           mapping_moments(r, json_object_get(root, "moments")) &&
           mapping_keeps(r, json_object_get(root, "keep")) &&
           mapping_retries(r, json_object_get(root, "retries")) && read_alert(r, root) &&
           mapping_check_ends(r);
}

Mapping *mapping_read(Str json, Error *err)
{
    if (json.len > MAPPING_BYTES_MAX) {
        error_set(err, ERROR_CONFIG, "mapping is longer than %d bytes", (int)MAPPING_BYTES_MAX);
        return NULL;
    }
    json_error_t where;
    json_t *root = json_loadb(json.ptr, json.len, JSON_REJECT_DUPLICATES, &where);
    if (!json_is_object(root)) {
        error_set(
            err, ERROR_CONFIG, "mapping is not a JSON object: line %d, column %d: %.100s",
            where.line, where.column, root == NULL ? where.text : "another value");
        json_decref(root);
        return NULL;
    }
    Arena *arena = arena_new(0);
    Mapping *m = arena_zalloc(arena, sizeof *m);
    m->arena = arena;
    m->root = root;
    MappingReader reader = {.mapping = m, .arena = arena, .err = err};
    if (!read_members(&reader, root)) {
        mapping_free(m);
        return NULL;
    }
    return m;
}

void mapping_free(Mapping *mapping)
{
    if (mapping != NULL) {
        json_decref(mapping->root);
        arena_free(mapping->arena);
    }
}
