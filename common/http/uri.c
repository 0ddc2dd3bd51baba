// SPDX-License-Identifier: Apache-2.0
#include "common/http/uri.h"

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    if (c >= 'A' && c <= 'F') {
        return c - 'A' + 10;
    }
    return -1;
}

// 1..255, or 0 when `at` does not begin with an escape that may be decoded.
static int decode_escape(const char *at)
{
    if (at[0] != '%' || hex_digit(at[1]) < 0 || hex_digit(at[2]) < 0) {
        return 0;
    }
    return hex_digit(at[1]) * 16 + hex_digit(at[2]);
}

size_t uri_unescape(char *text)
{
    char *to = text;
    for (const char *from = text; *from != '\0';) {
        int byte = decode_escape(from);
        *to++ = byte > 0 ? (char)byte : *from;
        from += byte > 0 ? 3 : 1;
    }
    *to = '\0';
    return (size_t)(to - text);
}
