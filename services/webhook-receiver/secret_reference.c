// SPDX-License-Identifier: Apache-2.0
#include "services/webhook-receiver/secret_reference.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SECRET_BYTES_MAX = 16384 };

static bool read_file(const char *path, Arena *arena, Str *ret, Error *err)
{
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return error_set(
            err, ERROR_CONFIG, "the key's file '%.120s' cannot be read: %s", path, strerror(errno));
    }
    char *bytes = arena_alloc(arena, SECRET_BYTES_MAX + 1);
    size_t len = fread(bytes, 1, SECRET_BYTES_MAX + 1, file);
    bool failed = ferror(file) != 0;
    (void)fclose(file);
    if (failed || len == 0 || len > SECRET_BYTES_MAX) {
        return error_set(
            err, ERROR_CONFIG, "the key's file '%.120s' is empty, too long or not readable", path);
    }
    *ret = str_trim(str_of(bytes, len));
    return true;
}

bool secret_reference_read(Str reference, Arena *arena, Str *ret, Error *err)
{
    if (str_starts(reference, STR("file:/"))) {
        return read_file(
            arena_cstr(arena, str_slice(reference, 5, reference.len)), arena, ret, err);
    }
    if (!str_starts(reference, STR("env:")) || reference.len == 4) {
        return error_set(
            err, ERROR_PERMANENT, "a reference is file:/path or env:NAME, not '%.40s'",
            arena_cstr(arena, str_slice(reference, 0, 40)));
    }
    const char *name = arena_cstr(arena, str_slice(reference, 4, reference.len));
    const char *value = getenv(name);
    if (value == NULL || value[0] == '\0') {
        return error_set(err, ERROR_CONFIG, "the environment has no '%.80s' for a key", name);
    }
    *ret = str_trim(str_from(value));
    return true;
}
