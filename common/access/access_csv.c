// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "common/access/access_export.h"
#include "common/base/buf.h"

// A spreadsheet takes a text that begins so for a formula.
static bool is_formula(Str text)
{
    return text.len > 0 && memchr("=+-@\t\r", text.ptr[0], 6) != NULL;
}

static void add_text(Buf *out, Str text)
{
    buf_cstr(out, is_formula(text) ? "\"'" : "\"");
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '"') {
            buf_char(out, '"');
        }
        buf_char(out, text.ptr[i]);
    }
    buf_char(out, '"');
}

// Texts in quotes; an object as its JSON; null is empty.
static void add_value(Buf *out, const json_t *value)
{
    if (value == NULL || json_is_null(value)) {
        return;
    }
    if (json_is_string(value)) {
        add_text(out, str_of(json_string_value(value), json_string_length(value)));
        return;
    }
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    if (json_is_object(value) || json_is_array(value)) {
        add_text(out, str_from(text));
    } else {
        buf_cstr(out, text);
    }
    free(text);
}

bool access_csv(
    const char *section, const json_t *list, size_t max_bytes, Arena *arena, Str *ret, Error *err)
{
    Buf out;
    buf_init(&out, max_bytes);
    json_t *head = json_array_get(list, 0);
    const char *name = NULL;
    json_t *value = NULL;
    size_t i = 0;
    const json_t *row = NULL;
    const char *comma = "";
    json_object_foreach(head, name, value)
    {
        buf_printf(&out, "%s%s", comma, name);
        comma = ",";
    }
    buf_cstr(&out, head != NULL ? "\r\n" : "");
    json_array_foreach(list, i, row)
    {
        comma = "";
        json_object_foreach(head, name, value)
        {
            buf_cstr(&out, comma);
            add_value(&out, json_object_get(row, name));
            comma = ",";
        }
        buf_cstr(&out, "\r\n");
    }
    bool ok =
        !out.full ||
        error_set(err, ERROR_PERMANENT, "table '%s' is longer than %zu bytes", section, max_bytes);
    *ret = ok ? arena_str(arena, buf_view(&out)) : STR_EMPTY;
    buf_done(&out);
    return ok;
}
