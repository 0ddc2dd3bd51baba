// SPDX-License-Identifier: Apache-2.0
#include "common/render/public_url.h"

#include <string.h>

static bool is_url_byte(char c)
{
    return c > ' ' && c < 0x7f && strchr("<>\"\\^`{|},", c) == NULL;
}

bool public_url_read(const char *url, Arena *arena, Str *ret, Error *err)
{
    Str text = str_from(url);
    while (str_ends(text, STR("/"))) {
        text = str_slice(text, 0, text.len - 1);
    }
    bool good =
        text.len == 0 || str_starts(text, STR("https://")) || str_starts(text, STR("http://"));
    for (size_t i = 0; i < text.len; i++) {
        good = good && is_url_byte(text.ptr[i]);
    }
    if (!good || text.len > PUBLIC_URL_MAX) {
        return error_set(
            err, ERROR_CONFIG,
            PUBLIC_URL_OPTION ": expected an https:// URL of at most %d characters, such as "
                              "https://notify.example.com",
            PUBLIC_URL_MAX);
    }
    *ret = arena_str(arena, text);
    return true;
}
