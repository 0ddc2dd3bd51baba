// SPDX-License-Identifier: Apache-2.0
// Reads "fields": the source of each value of the message.
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "common/base/id.h"
#include "common/model/enums.h"
#include "common/outbox/mapping/mapping_read.h"

enum { PATH_SIZE = 160, VARIABLES_MAX = 64 };
enum { SOURCES_OF_FIELD = 3 }; // with those of `with` and `else`

enum { FOR_EVENT = 1, FOR_REQUEST = 2, REQUIRED = 4 };

// clang-format off
static const struct {
    const char *name;
    int use;
} FIELDS[FIELD_COUNT] = {
    [FIELD_TENANT]           = {"tenant",           FOR_EVENT | FOR_REQUEST | REQUIRED},
    [FIELD_TYPE]             = {"type",             FOR_EVENT | REQUIRED},
    [FIELD_DATA]             = {"data",             FOR_EVENT | REQUIRED},
    [FIELD_TIME]             = {"time",             FOR_EVENT},
    [FIELD_ID]               = {"id",               FOR_EVENT},
    [FIELD_TRACEPARENT]      = {"traceparent",      FOR_EVENT | FOR_REQUEST},
    [FIELD_TO]               = {"to",               FOR_REQUEST},
    [FIELD_TO_NAME]          = {"to_name",          FOR_REQUEST},
    [FIELD_CHANNEL]          = {"channel",          FOR_REQUEST},
    [FIELD_TEMPLATE]         = {"template",         FOR_REQUEST | REQUIRED},
    [FIELD_TEMPLATE_VERSION] = {"template_version", FOR_REQUEST},
    [FIELD_LOCALE]           = {"locale",           FOR_REQUEST},
    [FIELD_CATEGORY]         = {"category",         FOR_REQUEST},
    [FIELD_PRIORITY]         = {"priority",         FOR_REQUEST},
    [FIELD_CORRELATION_ID]   = {"correlation_id",   FOR_REQUEST},
    [FIELD_RECIPIENT_ID]     = {"recipient_id",     FOR_REQUEST},
    [FIELD_SCHEDULED_FOR]    = {"scheduled_for",    FOR_REQUEST},
    [FIELD_EXPIRES_AT]       = {"expires_at",       FOR_REQUEST},
    [FIELD_CONSENT_SOURCE]   = {"consent_source",   FOR_REQUEST},
    [FIELD_CONSENT_AT]       = {"consent_at",       FOR_REQUEST},
};
// clang-format on

const char *field_name(MappingField field)
{
    return FIELDS[field].name;
}

// ---- one source ----

static bool add_column(MappingReader *r, Str name, const char *path, int *ret)
{
    Mapping *m = r->mapping;
    for (int i = 0; i < m->column_count; i++) {
        if (str_eq(m->columns[i].name, name)) {
            *ret = i;
            return true;
        }
    }
    if (m->column_count == MAPPING_COLUMNS_MAX) {
        return mapping_wrong(
            r, path, "is one column too many: at most %d", (int)MAPPING_COLUMNS_MAX);
    }
    *ret = m->column_count++;
    m->columns[*ret] = (MappingColumn){.name = name, .field = arena_str(r->arena, str_from(path))};
    return true;
}

// Cuts at the next "->".
static bool next_step(Str *rest, Str *ret_step)
{
    if (rest->ptr == NULL) {
        return false;
    }
    for (size_t i = 0; i + 1 < rest->len; i++) {
        if (rest->ptr[i] == '-' && rest->ptr[i + 1] == '>') {
            *ret_step = str_slice(*rest, 0, i);
            *rest = str_slice(*rest, i + 2, rest->len);
            return true;
        }
    }
    *ret_step = *rest;
    rest->ptr = NULL;
    return true;
}

static void want_json(Mapping *m, const Source *source, Str path)
{
    MappingColumn *column = &m->columns[source->column];
    column->json = column->json.len > 0 ? column->json : path;
}

static bool read_path(MappingReader *r, const json_t *value, const char *path, Source *ret)
{
    Str rest = mapping_text(value);
    Str step = STR_EMPTY;
    if (rest.len == 0) {
        return mapping_wrong(
            r, path, "must be a column (\"payload->subject\") or {\"value\": ...}");
    }
    (void)next_step(&rest, &step);
    json_t *column = json_stringn(step.ptr, step.len);
    Str name = STR_EMPTY;
    bool ok = mapping_column(r, column, path, &name);
    json_decref(column);
    if (!ok || !add_column(r, arena_str(r->arena, step), path, &ret->column)) {
        return false;
    }
    while (next_step(&rest, &step)) {
        if (step.len == 0 || step.ptr[0] == '>' || ret->path_count == MAPPING_PATH_MAX) {
            return mapping_wrong(
                r, path, "'->' must be followed by a member's name, at most %d times",
                (int)MAPPING_PATH_MAX);
        }
        ret->path[ret->path_count++] = step;
    }
    if (ret->path_count == 0) {
        r->mapping->columns[ret->column].whole = true;
    } else {
        want_json(r->mapping, ret, arena_str(r->arena, str_from(path)));
    }
    return true;
}

static bool read_constant(MappingReader *r, const json_t *value, const char *path, Source *ret)
{
    if (!json_is_string(json_object_get(value, "value"))) {
        return mapping_wrong(r, path, "'value' must be a string");
    }
    ret->constant = true;
    ret->value = mapping_text(json_object_get(value, "value"));
    return mapping_known(r, value, path, "value");
}

static bool string_table(
    MappingReader *r, const json_t *value, const char *name, const char *path, json_t **ret)
{
    json_t *table = json_object_get(value, name);
    const char *key;
    json_t *member;
    if (table != NULL && (!json_is_object(table) || json_object_size(table) == 0)) {
        return mapping_wrong(r, path, "'%s' must be an object of strings", name);
    }
    json_object_foreach(table, key, member)
    {
        if (!json_is_string(member)) {
            return mapping_wrong(r, path, "'%s' must be an object of strings", name);
        }
    }
    *ret = table;
    return true;
}

static bool read_string(
    MappingReader *r, const json_t *value, const char *name, const char *path, Str *ret)
{
    const json_t *member = json_object_get(value, name);
    if (member == NULL) {
        return true;
    }
    *ret = mapping_text(member);
    return json_is_string(member) || mapping_wrong(r, path, "'%s' must be a string", name);
}

static bool read_keys(MappingReader *r, const json_t *value, const char *path, Source *ret)
{
    const json_t *keys = json_object_get(value, "keys");
    ret->snake = str_eq(mapping_text(keys), STR("snake_case"));
    return keys == NULL || ret->snake || mapping_wrong(r, path, "'keys' must be \"snake_case\"");
}

static bool read_transform(MappingReader *r, const json_t *value, const char *path, Source *ret)
{
    ret->fallback.ptr = NULL;
    bool ok =
        mapping_known(
            r, value, path, "column default before after names with else starts otherwise keys") &&
        read_path(r, json_object_get(value, "column"), path, ret) &&
        read_string(r, value, "default", path, &ret->fallback) &&
        read_string(r, value, "before", path, &ret->before) &&
        read_string(r, value, "after", path, &ret->after) &&
        read_string(r, value, "otherwise", path, &ret->otherwise) &&
        string_table(r, value, "names", path, &ret->names) &&
        string_table(r, value, "starts", path, &ret->starts) && read_keys(r, value, path, ret);
    if (ok && (ret->starts == NULL) != (ret->otherwise.len == 0)) {
        return mapping_wrong(r, path, "'starts' and 'otherwise' must be given together");
    }
    return ok;
}

size_t mapping_source_head(const Source *source)
{
    const char *key;
    json_t *value;
    size_t longest = 0;
    if (source->before.len > 0 || source->after.len > 0) {
        return 0;
    }
    json_object_foreach(source->starts, key, value)
    {
        longest = strlen(key) > longest ? strlen(key) : longest;
    }
    return longest;
}

static bool same_member(const Source *a, const Source *b)
{
    if (a->column != b->column || a->path_count != b->path_count ||
        mapping_source_head(a) != mapping_source_head(b)) {
        return false;
    }
    for (int i = 0; i < a->path_count; i++) {
        if (!str_eq(a->path[i], b->path[i])) {
            return false;
        }
    }
    return true;
}

static int member_of(Mapping *m, const Source *source)
{
    static_assert(
        SOURCES_OF_FIELD * FIELD_COUNT + VARIABLES_MAX <= MAPPING_MEMBERS_MAX,
        "a place for every source");
    if (source->path_count == 0) {
        return -1;
    }
    for (int i = 0; i < m->member_count; i++) {
        if (same_member(m->members[i], source)) {
            return i;
        }
    }
    m->members[m->member_count] = source;
    return m->member_count++;
}

// mapping_source.c
// `ret` lives as long as the mapping.
static bool mapping_source(MappingReader *r, const json_t *value, const char *path, Source *ret)
{
    *ret = (Source){.given = true};
    bool ok = !json_is_object(value)                    ? read_path(r, value, path, ret)
              : json_object_get(value, "value") != NULL ? read_constant(r, value, path, ret)
                                                        : read_transform(r, value, path, ret);
    ret->member = member_of(r->mapping, ret);
    return ok;
}

// One of the sources within a source: it has none itself.
static bool inner_source(
    MappingReader *r, const json_t *value, const char *name, const char *path, const Source **ret)
{
    const json_t *inner = json_object_get(value, name);
    char full[PATH_SIZE];
    if (inner == NULL) {
        return true;
    }
    if (json_object_get(value, "names") == NULL) {
        return mapping_wrong(r, path, "'%s' needs 'names'", name);
    }
    if (json_object_get(inner, "with") != NULL || json_object_get(inner, "else") != NULL) {
        return mapping_wrong(r, path, "'%s' has no 'with' or 'else' of its own", name);
    }
    snprintf(full, sizeof full, "%.100s.%s", path, name);
    Source *source = arena_zalloc(r->arena, sizeof *source);
    *ret = source;
    return mapping_source(r, inner, full, source);
}

// "with" and "else": of fields only.
static bool read_inner(MappingReader *r, const json_t *value, const char *path, Source *source)
{
    return inner_source(r, value, "with", path, &source->with) &&
           inner_source(r, value, "else", path, &source->other);
}

// ---- the fields ----

static void want_object(Mapping *m, const Source *source, const char *path)
{
    if (source->given && !source->constant) {
        want_json(m, source, str_from(path));
    }
}

static bool read_variables(MappingReader *r, const json_t *value)
{
    Mapping *m = r->mapping;
    const char *key;
    json_t *member;
    if (value == NULL) {
        return true;
    }
    // An object lists variables by name, unless its members make it a source.
    if (!json_is_object(value) || json_is_string(json_object_get(value, "column"))) {
        if (!mapping_source(r, value, "fields.variables", &m->all)) {
            return false;
        }
        want_object(m, &m->all, "fields.variables");
        return true;
    }
    if (json_object_size(value) > VARIABLES_MAX) {
        return mapping_wrong(r, "fields.variables", "has more than %d", (int)VARIABLES_MAX);
    }
    m->variables = arena_array(r->arena, json_object_size(value), sizeof(Variable));
    json_object_foreach((json_t *)(uintptr_t)value, key, member)
    {
        char path[PATH_SIZE];
        snprintf(path, sizeof path, "fields.variables.%.60s", key);
        Variable *variable = &m->variables[m->variable_count++];
        variable->name = str_from(key);
        if (json_object_get(member, "with") != NULL || json_object_get(member, "else") != NULL) {
            return mapping_wrong(r, path, "'with' and 'else' are not for variables");
        }
        if (!mapping_source(r, member, path, &variable->source)) {
            return false;
        }
    }
    return true;
}

static bool read_field(MappingReader *r, const json_t *fields, MappingField field)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "fields.%s", FIELDS[field].name);
    const json_t *value = json_object_get(fields, FIELDS[field].name);
    bool request = mapping_is_request(r->mapping);
    bool ours = (FIELDS[field].use & (request ? FOR_REQUEST : FOR_EVENT)) != 0;
    if (value == NULL) {
        bool required = ours && (FIELDS[field].use & REQUIRED) != 0;
        return !required ||
               mapping_wrong(
                   r, path, "is required to publish %s", request ? "a request" : "an event");
    }
    if (!ours) {
        return mapping_wrong(r, path, "is not for \"%s\"", request ? "request" : "event");
    }
    return mapping_source(r, value, path, &r->mapping->fields[field]) &&
           read_inner(r, value, path, &r->mapping->fields[field]);
}

const char *field_misfit(MappingField field, Str word)
{
    Channel channel = CHANNEL_EMAIL;
    Category category = CATEGORY_NONE;
    Priority priority = PRIORITY_NONE;
    if (field == FIELD_TEMPLATE && !id_is_key(word)) {
        return "is not a template's key: [a-z0-9_-]{1,64}";
    }
    if (field == FIELD_CHANNEL && !channel_from_name(word, &channel)) {
        return "is not a channel";
    }
    if (field == FIELD_CATEGORY && !category_from_name(word, &category)) {
        return "is not a category";
    }
    return field == FIELD_PRIORITY && !priority_from_name(word, &priority) ? "is not a priority"
                                                                           : NULL;
}

static bool check_constant(MappingReader *r, MappingField field, Str word)
{
    char path[PATH_SIZE];
    const char *why = word.len == 0 ? NULL : field_misfit(field, word);
    snprintf(path, sizeof path, "fields.%s", FIELDS[field].name);
    return why == NULL || mapping_wrong(r, path, "'%.*s' %s", STR_ARG(str_slice(word, 0, 40)), why);
}

static bool check_table(MappingReader *r, MappingField field, json_t *table)
{
    const char *key;
    json_t *word;
    json_object_foreach(table, key, word)
    {
        if (!check_constant(r, field, mapping_text(word))) {
            return false;
        }
    }
    return true;
}

static bool check_source(MappingReader *r, MappingField field, const Source *source)
{
    return check_constant(r, field, source->value) && check_constant(r, field, source->fallback) &&
           check_constant(r, field, source->otherwise) && check_table(r, field, source->starts) &&
           check_table(r, field, source->names);
}

// An invalid constant of the mapping would reject every row that gets it.
static bool check_constants(MappingReader *r)
{
    for (int i = 0; i < FIELD_COUNT; i++) {
        MappingField field = (MappingField)i;
        const Source *source = &r->mapping->fields[field];
        if (!check_source(r, field, source) ||
            (source->other != NULL && !check_source(r, field, source->other))) {
            return false;
        }
    }
    return true;
}

static bool check_fields(MappingReader *r)
{
    const Source *fields = r->mapping->fields;
    const Source *tenant = &fields[FIELD_TENANT];
    if (tenant->constant && !id_is_tenant(tenant->value)) {
        return mapping_wrong(r, "fields.tenant", "is not a tenant: 1 to 32 of [a-z0-9_-]");
    }
    if (!mapping_is_request(r->mapping)) {
        want_object(r->mapping, &fields[FIELD_DATA], "fields.data");
        return !fields[FIELD_DATA].constant || mapping_wrong(r, "fields.data", "must be a column");
    }
    return fields[FIELD_TO].given || fields[FIELD_RECIPIENT_ID].given ||
           mapping_wrong(r, "fields.to", "is required (or 'recipient_id')");
}

bool mapping_fields(MappingReader *r, const json_t *fields)
{
    char known[400] = "";
    int len = 0;
    if (!json_is_object(fields)) {
        return mapping_wrong(r, "fields", "is required: an object");
    }
    for (int i = 0; i < FIELD_COUNT; i++) {
        len += snprintf(known + len, sizeof known - (size_t)len, "%s ", FIELDS[i].name);
    }
    snprintf(known + len, sizeof known - (size_t)len, "variables");
    if (!mapping_known(r, fields, "fields", known)) {
        return false;
    }
    for (int i = 0; i < FIELD_COUNT; i++) {
        if (!read_field(r, fields, (MappingField)i)) {
            return false;
        }
    }
    const json_t *variables = json_object_get(fields, "variables");
    if (variables != NULL && !mapping_is_request(r->mapping)) {
        return mapping_wrong(r, "fields.variables", "is not for \"event\": use 'data'");
    }
    return read_variables(r, variables) && check_fields(r) && check_constants(r);
}
