// SPDX-License-Identifier: Apache-2.0
// What stands in a JSON string as it is. Not public: used inside common/json.
#pragma once

#include <string.h>

#include "common/base/str.h"

// Eight bytes at once: ASCII, and none is a quote, a backslash or a control character.
static inline bool json_is_plain_word(const char *p)
{
    const uint64_t highs = UINT64_C(0x8080808080808080);
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t word;
    memcpy(&word, p, sizeof word);
    uint64_t quotes = word ^ (ones * '"');
    uint64_t slashes = word ^ (ones * '\\');
    return ((word | (word - ones * 0x20) | (quotes - ones) | (slashes - ones)) & highs) == 0;
}

// How many bytes at the front do. What ends them with its high bit set is no UTF-8.
static inline size_t json_plain_len(Str text)
{
    size_t at = 0;
    while (at < text.len) {
        unsigned char c = (unsigned char)text.ptr[at];
        size_t step = 1;
        if (text.len - at >= 8 && json_is_plain_word(text.ptr + at)) {
            step = 8;
        } else if (c >= 0x80) {
            step = str_utf8_step(str_slice(text, at, text.len));
        } else if (c == '"' || c == '\\' || c < 0x20) {
            break;
        }
        if (step == 0) {
            break;
        }
        at += step;
    }
    return at;
}
