// SPDX-License-Identifier: Apache-2.0
#include "common/bus/jetstream/trace.h"

enum { PARENT_LEN = 55, PARENT_MAX = 128 };

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

// Small letters only, and not all of them zero.
static bool is_id(Str text)
{
    bool any = false;
    for (size_t i = 0; i < text.len; i++) {
        if (!is_hex(text.ptr[i])) {
            return false;
        }
        any = any || text.ptr[i] != '0';
    }
    return any;
}

static bool is_tail(Str version, Str tail)
{
    for (size_t i = 0; i < tail.len; i++) {
        if (tail.ptr[i] <= ' ' || tail.ptr[i] > '~') {
            return false;
        }
    }
    return tail.len == 0 || (tail.ptr[0] == '-' && !str_eq(version, STR("00")));
}

bool trace_is_parent(Str text)
{
    if (text.len < PARENT_LEN || text.len > PARENT_MAX) {
        return false;
    }
    const char *c = text.ptr;
    Str version = str_slice(text, 0, 2);
    return is_hex(c[0]) && is_hex(c[1]) && !str_eq(version, STR("ff")) && c[2] == '-' &&
           is_id(str_slice(text, 3, 35)) && c[35] == '-' && is_id(str_slice(text, 36, 52)) &&
           c[52] == '-' && is_hex(c[53]) && is_hex(c[54]) &&
           is_tail(version, str_slice(text, PARENT_LEN, text.len));
}
