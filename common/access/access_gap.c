// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>

#include "common/access/access_export.h"

void access_append(AccessExport *x, json_t *list, json_t *row)
{
    if (json_array_append_new(list, row) != 0) {
        x->refused++;
    }
}

void access_set(AccessExport *x, json_t *object, const char *name, json_t *value)
{
    if (json_object_set_new(object, name, value) != 0) {
        x->refused++;
        json_object_set_new(object, name, json_null()); // a table keeps its columns
    }
}

void access_end_section(AccessExport *x, const char *section)
{
    if (x->refused > 0) {
        json_array_append_new(
            x->gaps, json_pack(
                         "{s:o, s:s, s:s}", "what",
                         json_sprintf(
                             "%" PRIu64 " rows or fields of '%s' whose text is not UTF-8",
                             x->refused, section),
                         "where", "", "sha256", ""));
    }
    x->refused = 0;
}
