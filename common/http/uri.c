// SPDX-License-Identifier: Apache-2.0
#include "common/http/uri.h"

#include "common/base/id.h"

size_t uri_unescape(char *text)
{
    char *to = text;
    for (const char *from = text; *from != '\0';) {
        int high = from[0] == '%' ? hex_value(from[1]) : -1;
        int low = high >= 0 ? hex_value(from[2]) : -1;
        bool escape = low >= 0 && high * 16 + low > 0; // of a NUL: none
        *to++ = escape ? (char)(high * 16 + low) : *from;
        from += escape ? 3 : 1;
    }
    *to = '\0';
    return (size_t)(to - text);
}
