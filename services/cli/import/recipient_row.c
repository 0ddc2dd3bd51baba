// SPDX-License-Identifier: Apache-2.0
#include "services/cli/import/recipient_row.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "common/model/enums.h"

#define CONSENT STR("consent_")

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
           strcmp(name, "quiet_end") == 0 || is_consent(name, &category);
}

bool row_columns(const CsvRecord *header, RowColumns *ret, Error *err)
{
    ret->count = header->count;
    for (size_t i = 0; i < header->count; i++) {
        Str name = str_trim(header->fields[i]);
        if (i == 0 && str_starts(name, STR("\xEF\xBB\xBF"))) { // a byte order mark
            name = str_slice(name, 3, name.len);
        }
        if (!str_to_c(name, ret->names[i], sizeof ret->names[i]) || !is_column(ret->names[i])) {
            return error_set(
                err, ERROR_PERMANENT,
                "unknown column '%.*s' (known: id, identity_type, identity_id, name, locale, "
                "time_zone, quiet_start, quiet_end, minor, guardian_id, guardian_routing, a "
                "channel, consent_<category>)",
                STR_ARG(str_slice(name, 0, 40)));
        }
        for (size_t n = 0; n < i; n++) {
            if (strcmp(ret->names[n], ret->names[i]) == 0) {
                return error_set(
                    err, ERROR_PERMANENT, "column '%s' stands there twice", ret->names[i]);
            }
        }
    }
    return ret->count > 0 || error_set(err, ERROR_PERMANENT, "the first line names no column");
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

static bool to_text(const char *name, Str text, json_t **ret, Error *err)
{
    *ret = json_stringn(text.ptr, text.len);
    return *ret != NULL || error_set(err, ERROR_PERMANENT, "column '%s': not valid UTF-8", name);
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

static bool add_cell(json_t *person, const char *name, Str text, Error *err)
{
    Str category = STR_EMPTY;
    Channel channel = CHANNEL_NONE;
    json_t *value = NULL;
    bool consent = is_consent(name, &category);
    bool is_flag = consent || strcmp(name, "minor") == 0;
    if (!(is_flag ? to_bool(name, text, &value, err) : to_text(name, text, &value, err))) {
        return false;
    }
    if (consent) {
        json_t *entry = json_pack(
            "{s:s#, s:o, s:s}", "category", category.ptr, (int)category.len, "granted", value,
            "source", "import");
        (void)json_array_append_new(member(person, "consents", json_array), entry);
    } else if (channel_from_name(str_from(name), &channel)) {
        json_t *entry = json_pack("{s:s, s:o}", "channel", name, "address", value);
        (void)json_array_append_new(member(person, "addresses", json_array), entry);
    } else if (strncmp(name, "quiet_", 6) == 0) {
        (void)json_object_set_new(member(person, "quiet_hours", json_object), name + 6, value);
    } else {
        (void)json_object_set_new(person, name, value);
    }
    return true;
}

bool recipient_row_json(const RowColumns *columns, const CsvRecord *row, Buf *out, Error *err)
{
    if (row->count != columns->count) {
        return error_set(
            err, ERROR_PERMANENT, "%zu fields where the first line names %zu", row->count,
            columns->count);
    }
    json_t *person = json_object();
    bool ok = true;
    for (size_t i = 0; ok && i < row->count; i++) {
        Str text = str_trim(row->fields[i]);
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
