// SPDX-License-Identifier: Apache-2.0
#include "common/base/file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

bool file_read(const char *path, size_t max, Arena *arena, Str *ret, Error *err)
{
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    if (file == NULL) {
        return error_set(err, ERROR_CONFIG, "cannot open '%s': %s", path, strerror(errno));
    }
    char *bytes = arena_alloc(arena, max + 1);
    size_t len = fread(bytes, 1, max + 1, file);
    bool failed = ferror(file) != 0;
    if (file != stdin) {
        fclose(file);
    }
    if (failed) {
        return error_set(err, ERROR_CONFIG, "cannot read '%s': %s", path, strerror(errno));
    }
    if (len > max) {
        return error_set(err, ERROR_PERMANENT, "'%s' is longer than %zu bytes", path, max);
    }
    *ret = str_of(bytes, len);
    return true;
}
