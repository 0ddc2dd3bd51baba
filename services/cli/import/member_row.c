// SPDX-License-Identifier: Apache-2.0
#include "services/cli/import/member_row.h"

#include <string.h>

enum { NAME_MAX_BYTES = 63 };

static const char OWN_PREFIX[] = "variables.";

static bool is_own_field(const char *name)
{
    return strcmp(name, "to") == 0 || strcmp(name, "name") == 0 ||
           strcmp(name, "recipient_id") == 0 || strcmp(name, "locale") == 0;
}

static bool check_header(const RecordColumns *columns, Error *err)
{
    bool addressed = false;
    for (size_t i = 0; i < columns->count; i++) {
        const char *name = columns->names[i];
        if (strlen(name) > NAME_MAX_BYTES) {
            return error_set(
                err, ERROR_PERMANENT, "the header's column %zu has no name of 1 to %d bytes", i + 1,
                NAME_MAX_BYTES);
        }
        addressed = addressed || strcmp(name, "to") == 0 || strcmp(name, "recipient_id") == 0;
    }
    return record_columns_check(columns, err) &&
           (addressed ||
            error_set(
                err, ERROR_PERMANENT, "the header has neither a column 'to' nor 'recipient_id'"));
}

static void add_pair(Buf *out, const char *before, const char *name, Str value)
{
    buf_cstr(out, before);
    buf_json(out, str_from(name));
    buf_char(out, ':');
    buf_json(out, value);
}

static bool write_row(const RecordColumns *columns, const Str *fields, Buf *out, Error *err)
{
    (void)err;
    const char *before = "{";
    for (size_t i = 0; i < columns->count; i++) {
        if (is_own_field(columns->names[i]) && fields[i].len > 0) {
            add_pair(out, before, columns->names[i], fields[i]);
            before = ",";
        }
    }
    buf_cstr(out, before);
    buf_cstr(out, "\"variables\":");
    before = "{";
    for (size_t i = 0; i < columns->count; i++) {
        const char *name = columns->names[i];
        if (!is_own_field(name)) {
            bool prefixed = strncmp(name, OWN_PREFIX, sizeof OWN_PREFIX - 1) == 0;
            add_pair(out, before, prefixed ? name + sizeof OWN_PREFIX - 1 : name, fields[i]);
            before = ",";
        }
    }
    buf_cstr(out, before[0] == '{' ? "{}}\n" : "}}\n");
    return true;
}

const RecordKind member_records = {
    .line_max = MEMBER_LINE_MAX,
    .check_header = check_header,
    .write_row = write_row,
};
