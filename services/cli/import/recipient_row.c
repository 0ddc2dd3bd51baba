// SPDX-License-Identifier: Apache-2.0
#include "services/cli/import/recipient_row.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "common/model/enums.h"

#define CONSENT STR("consent_")
#define LABELS "labels" // with blanks, commas or semicolons between

// Columns that are fields of the record as they stand.
static const char *const TEXTS[] = {"id",     "identity_type", "identity_id", "name",
                                    "locale", "time_zone",     "guardian_id", "guardian_routing"};
enum { TEXT_COUNT = sizeof TEXTS / sizeof *TEXTS };

static bool is_text(const char *name)
{
    for (int i = 0; i < TEXT_COUNT; i++) {
        if (strcmp(TEXTS[i], name) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_consent(const char *name, Str *ret_category)
{
    Category category = CATEGORY_NONE;
    Str text = str_from(name);
    *ret_category = str_slice(text, CONSENT.len, text.len);
    return str_starts(text, CONSENT) &&
           (category_from_name(*ret_category, &category) || str_eq(*ret_category, STR("any")));
}

static bool is_column(const char *name)
{
    Channel channel = CHANNEL_NONE;
    Str category = STR_EMPTY;
    return is_text(name) || channel_from_name(str_from(name), &channel) ||
           strcmp(name, "minor") == 0 || strcmp(name, "quiet_start") == 0 ||
           strcmp(name, "quiet_end") == 0 || strcmp(name, LABELS) == 0 ||
           is_consent(name, &category);
}

static bool check_header(const RecordColumns *columns, Error *err)
{
    for (size_t i = 0; i < columns->count; i++) {
        if (!is_column(columns->names[i])) {
            return error_set(
                err, ERROR_PERMANENT,
                "unknown column '%.40s' (known: id, identity_type, identity_id, name, locale, "
                "time_zone, quiet_start, quiet_end, minor, guardian_id, guardian_routing, "
                "labels, a channel, consent_<category>)",
                columns->names[i]);
        }
    }
    return record_columns_check(columns, err);
}

static bool to_bool(const char *name, Str text, json_t **ret, Error *err)
{
    bool yes = str_eq_nocase(text, STR("true")) || str_eq(text, STR("1"));
    bool no = str_eq_nocase(text, STR("false")) || str_eq(text, STR("0"));
    *ret = yes || no ? json_boolean(yes) : NULL;
    return *ret != NULL || error_set(
                               err, ERROR_PERMANENT, "column '%s': '%.*s' is not true or false",
                               name, STR_ARG(str_slice(text, 0, 40)));
}

static json_t *member(json_t *object, const char *name, json_t *(*make)(void))
{
    json_t *value = json_object_get(object, name);
    if (value == NULL) {
        value = make();
        (void)json_object_set_new(object, name, value);
    }
    return value;
}

static bool is_between(char c)
{
    return c == ' ' || c == ',' || c == ';';
}

static void add_labels(json_t *person, const char *text)
{
    json_t *labels = member(person, LABELS, json_array);
    for (const char *at = text; *at != '\0';) {
        size_t len = 0;
        while (at[len] != '\0' && !is_between(at[len])) {
            len++;
        }
        if (len > 0) {
            (void)json_array_append_new(labels, json_stringn(at, len));
        }
        at += len + (at[len] != '\0' ? 1 : 0);
    }
}

static bool add_cell(json_t *person, const char *name, Str text, Error *err)
{
    Str category = STR_EMPTY;
    Channel channel = CHANNEL_NONE;
    json_t *value = NULL;
    bool consent = is_consent(name, &category);
    bool is_flag = consent || strcmp(name, "minor") == 0;
    if (is_flag && !to_bool(name, text, &value, err)) {
        return false;
    }
    value = is_flag ? value : json_stringn(text.ptr, text.len);
    if (value == NULL) {
        return error_set(err, ERROR_PERMANENT, "column '%s': not valid UTF-8", name);
    }
    if (consent) {
        json_t *entry = json_pack(
            "{s:s#, s:o, s:s}", "category", category.ptr, (int)category.len, "granted", value,
            "source", "import");
        (void)json_array_append_new(member(person, "consents", json_array), entry);
    } else if (channel_from_name(str_from(name), &channel)) {
        json_t *entry = json_pack("{s:s, s:o}", "channel", name, "address", value);
        (void)json_array_append_new(member(person, "addresses", json_array), entry);
    } else if (strcmp(name, LABELS) == 0) {
        add_labels(person, json_string_value(value));
        json_decref(value);
    } else if (strncmp(name, "quiet_", 6) == 0) {
        (void)json_object_set_new(member(person, "quiet_hours", json_object), name + 6, value);
    } else {
        (void)json_object_set_new(person, name, value);
    }
    return true;
}

static bool write_row(const RecordColumns *columns, const Str *fields, Buf *out, Error *err)
{
    json_t *person = json_object();
    bool ok = true;
    for (size_t i = 0; ok && i < columns->count; i++) {
        Str text = str_trim(fields[i]);
        ok = text.len == 0 || add_cell(person, columns->names[i], text, err);
    }
    char *line = ok ? json_dumps(person, JSON_COMPACT) : NULL;
    json_decref(person);
    if (ok && (!buf_cstr(out, line) || !buf_char(out, '\n'))) {
        ok = error_set(err, ERROR_PERMANENT, "the row is too long");
    }
    free(line);
    return ok;
}

const RecordKind recipient_records = {
    .line_max = CSV_RECORD_MAX,
    .check_header = check_header,
    .write_row = write_row,
};
