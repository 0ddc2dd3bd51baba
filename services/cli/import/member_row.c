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

// The columns of the member's consent, as the fields of the object that they become; NULL: none.
static const char *consent_field(const char *name)
{
    if (strcmp(name, "consent_source") == 0) {
        return "source";
    }
    return strcmp(name, "consent_at") == 0 ? "given_at" : NULL;
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

// Of a row without a value in either column nothing: the batch's own counts.
static void write_consent(const RecordColumns *columns, const Str *fields, Buf *out)
{
    const char *before = "\"consent\":{";
    for (size_t i = 0; i < columns->count; i++) {
        const char *field = consent_field(columns->names[i]);
        if (field != NULL && fields[i].len > 0) {
            add_pair(out, before, field, fields[i]);
            before = ",";
        }
    }
    if (before[0] == ',') {
        buf_cstr(out, "},");
    }
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
    write_consent(columns, fields, out);
    buf_cstr(out, "\"variables\":");
    before = "{";
    for (size_t i = 0; i < columns->count; i++) {
        const char *name = columns->names[i];
        if (!is_own_field(name) && consent_field(name) == NULL) {
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
