// SPDX-License-Identifier: Apache-2.0
#include <assert.h>
#include <string.h>

#include "common/base/log.h"

enum {
    PARTS_MAX = 16,
    PART_MIN = 16, // no word of a URL, no name of a host between two dots is as long
    DIGITS_MIN = 7,
    CUT_MIN = 8,  // less of it at the end of a text tells nothing
    WORD_MIN = 2, // a single byte names none, and a text of it would be thrice as long
    WORD_MAX = 6, // an address as short is masked as a word only
    GAP_MAX = 3,  // bytes between two digits of a phone number
};

typedef struct Needles {
    Str texts[PARTS_MAX + 1];
    size_t count;
    bool spread; // digits, between which other characters may stand
} Needles;

static bool is_of_token(char c)
{
    return ascii_is_alnum(c) || c == '-' || c == '_';
}

static bool is_all_digits(Str text)
{
    size_t digits = 0;
    while (digits < text.len && ascii_is_digit(text.ptr[digits])) {
        digits++;
    }
    return digits == text.len;
}

static Needles needles_of(Str address)
{
    Str rest = str_starts(address, STR("+")) ? str_slice(address, 1, address.len) : address;
    if (rest.len >= DIGITS_MIN && is_all_digits(rest)) {
        return (Needles){.texts = {rest}, .count = 1, .spread = true};
    }
    Needles needles = {.texts = {address}, .count = address.len >= WORD_MIN ? 1 : 0};
    size_t begin = 0;
    for (size_t i = 0; i <= address.len && needles.count <= PARTS_MAX; i++) {
        if (i < address.len && is_of_token(address.ptr[i])) {
            continue;
        }
        if (i - begin >= PART_MIN && i - begin < address.len) {
            needles.texts[needles.count++] = str_slice(address, begin, i);
        }
        begin = i + 1;
    }
    return needles;
}

// How much of `text` is the address's digits; 0: it begins with others.
static size_t match_digits(Str text, Str digits)
{
    size_t at = 0, found = 0, gap = 0;
    while (at < text.len && found < digits.len && gap <= GAP_MAX) {
        if (text.ptr[at] == digits.ptr[found]) {
            found++;
            gap = 0;
        } else if (found == 0 || ascii_is_alnum(text.ptr[at])) {
            return 0;
        } else {
            gap++;
        }
        at++;
    }
    bool cut = at == text.len && found >= DIGITS_MIN;
    return found == digits.len || cut ? at : 0;
}

// The same of any other text.
static size_t match_text(Str text, Str needle)
{
    Str head = str_slice(text, 0, needle.len);
    bool whole = head.len == needle.len;
    if (head.len == 0 || !(whole || head.len >= CUT_MIN)) {
        return 0;
    }
    return str_eq_nocase(head, str_slice(needle, 0, head.len)) ? head.len : 0;
}

static bool is_word(Str text, size_t at, size_t length)
{
    size_t end = at + length;
    return (at == 0 || !is_of_token(text.ptr[at - 1])) &&
           (end == text.len || !is_of_token(text.ptr[end]));
}

static size_t match(Str text, size_t at, const Needles *needles)
{
    size_t longest = 0;
    Str rest = str_slice(text, at, text.len);
    for (size_t i = 0; i < needles->count; i++) {
        Str needle = needles->texts[i];
        size_t length = needles->spread ? match_digits(rest, needle) : match_text(rest, needle);
        bool good = needle.len > WORD_MAX || is_word(text, at, length);
        longest = good && length > longest ? length : longest;
    }
    return longest;
}

void mask_known(Str text, Str address, char *out, size_t size)
{
    assert(size > 0);
    Needles needles = needles_of(address);
    size_t len = 0;
    for (size_t at = 0; at < text.len && len + 1 < size;) {
        size_t length = match(text, at, &needles);
        Str part = length > 0 ? STR("***") : str_slice(text, at, at + 1);
        part = str_slice(part, 0, size - 1 - len);
        memcpy(out + len, part.ptr, part.len);
        len += part.len;
        at += length > 0 ? length : 1;
    }
    out[len] = '\0';
}
