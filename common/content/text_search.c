// SPDX-License-Identifier: Apache-2.0
#include "common/content/text_search.h"

#include <string.h>

bool text_search(Str bytes, Str text)
{
    while (bytes.len >= text.len) {
        if (text.len == 0 || memcmp(bytes.ptr, text.ptr, text.len) == 0) {
            return true;
        }
        const char *next = memchr(bytes.ptr + 1, text.ptr[0], bytes.len - 1);
        if (next == NULL) {
            return false;
        }
        bytes = str_slice(bytes, (size_t)(next - bytes.ptr), bytes.len);
    }
    return false;
}
