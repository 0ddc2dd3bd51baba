// SPDX-License-Identifier: Apache-2.0
#include "services/cli/vendors/definition_file.h"

#include "services/cli/cli.h"

json_t *definition_file(const char *path, Error *err)
{
    json_error_t where;
    json_t *definition = json_load_file(path, JSON_REJECT_DUPLICATES, &where);
    if (definition == NULL && where.line < 1) {
        (void)error_set(err, ERROR_USAGE, "%.100s cannot be read: %.80s", path, where.text);
    } else if (definition == NULL) {
        (void)error_set(
            err, ERROR_USAGE, "%.100s: line %d, column %d: %.80s", path, where.line, where.column,
            where.text);
    }
    return definition;
}
