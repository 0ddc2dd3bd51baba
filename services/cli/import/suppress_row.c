// SPDX-License-Identifier: Apache-2.0
#include "services/cli/import/suppress_row.h"

#include "common/api/suppress_line.h"

static const char *const NAMES[] = {"address", "address_hash", "channel",    "category",
                                    "reason",  "note",         "expires_at", "released_at"};
enum { NAME_COUNT = sizeof NAMES / sizeof NAMES[0] };

static int find_name(const char *column)
{
    for (int i = 0; i < NAME_COUNT; i++) {
        if (str_eq_nocase(str_from(column), str_from(NAMES[i]))) {
            return i;
        }
    }
    return -1;
}

static bool check_header(const RecordColumns *columns, Error *err)
{
    bool seen[NAME_COUNT] = {false};
    bool ok = true;
    for (size_t i = 0; ok && i < columns->count; i++) {
        int name = find_name(columns->names[i]);
        if (name >= 0) {
            ok = !seen[name];
            seen[name] = true;
        }
    }
    return (ok && (seen[0] || seen[1])) ||
           error_set(
               err, ERROR_PERMANENT,
               "the first line must name the columns, each once, among them 'address' or "
               "'address_hash'");
}

static bool write_row(const RecordColumns *columns, const Str *fields, Buf *out, Error *err)
{
    const char *before = "{";
    for (size_t i = 0; i < columns->count; i++) {
        if (!str_is_utf8(fields[i])) {
            return error_set(err, ERROR_PERMANENT, "column %zu: it is not UTF-8", i + 1);
        }
    }
    for (size_t i = 0; i < columns->count; i++) {
        int name = find_name(columns->names[i]);
        Str value = str_trim(fields[i]);
        if (name >= 0 && value.len > 0) {
            buf_printf(out, "%s\"%s\":", before, NAMES[name]);
            buf_json(out, value);
            before = ",";
        }
    }
    buf_cstr(out, before[0] == '{' ? "{}\n" : "}\n");
    return true;
}

const RecordKind suppress_records = {
    .line_max = SUPPRESS_LINE_MAX,
    .short_rows = true,
    .check_header = check_header,
    .write_row = write_row,
};
