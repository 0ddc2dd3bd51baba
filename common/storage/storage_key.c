// SPDX-License-Identifier: Apache-2.0
#include "common/storage/internal.h"

bool storage_key_byte(char c)
{
    return ascii_is_alnum(c) || c == '-' || c == '_' || c == '.' || c == '=';
}

static bool refuse(Str key, const char *why, Error *err)
{
    return error_set(
        err, ERROR_PERMANENT, "object '" STR_FMT "': %s", STR_ARG(str_slice(key, 0, 120)), why);
}

static bool check_bytes(Str key, Error *err)
{
    for (size_t i = 0; i < key.len; i++) {
        if (key.ptr[i] != '/' && !storage_key_byte(key.ptr[i])) {
            return error_set(
                err, ERROR_PERMANENT, "a key has the byte 0x%02x (HINT: a-z A-Z 0-9 - _ . = /)",
                (unsigned char)key.ptr[i]);
        }
    }
    return key.len <= STORAGE_KEY_MAX || refuse(key, "its key is longer than 900", err);
}

static bool check_parts(Str key, bool may_end_empty, Error *err)
{
    for (size_t begin = 0; begin <= key.len;) {
        ptrdiff_t slash = str_find(str_slice(key, begin, key.len), '/');
        size_t end = slash < 0 ? key.len : begin + (size_t)slash;
        if (end == begin && !(may_end_empty && end == key.len)) {
            return refuse(key, "a part of its key is empty", err);
        }
        if (end > begin && key.ptr[begin] == '.') {
            return refuse(key, "a part of its key begins with '.'", err);
        }
        begin = end + 1;
    }
    return true;
}

bool storage_key_check(Str key, Error *err)
{
    return check_bytes(key, err) && check_parts(key, false, err);
}

bool storage_prefix_check(Str prefix, Error *err)
{
    return check_bytes(prefix, err) && check_parts(prefix, true, err);
}
