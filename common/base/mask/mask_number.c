// SPDX-License-Identifier: Apache-2.0
#include "common/base/mask/mask_number.h"

#include <string.h>

enum {
    DIGITS_MIN = 7,
    JOINED_MIN = 9,   // of short groups with blanks between: "21211 400" are two codes
    GROUP_MAX = 15,   // E.164
    GAP_MAX = 3,      // ") (", " - "
    PARTS_MAX = 4,    // of an IPv4 address
    PART_MAX = 10000, // a year
};

// What stands between two blanks, from a digit on: "+49(0)151-777" has two of its groups.
typedef struct Chunk {
    size_t begin, end;
    size_t digits;
    size_t group; // the digits of its longest group
} Chunk;

static bool is_word(char c)
{
    return ascii_is_alnum(c) || c == '_';
}

static bool is_one_of(char c, const char *set)
{
    return c != '\0' && strchr(set, c) != NULL;
}

static bool is_digit_at(Str text, size_t at)
{
    return at < text.len && ascii_is_digit(text.ptr[at]);
}

// A hyphen between two belongs to the word: parts of a UUID are no numbers.
static size_t word_end(Str text, size_t at, bool *ret_plain)
{
    size_t begin = at;
    *ret_plain = true;
    for (; at < text.len; at++) {
        bool hyphen =
            at > begin && text.ptr[at] == '-' && at + 1 < text.len && is_word(text.ptr[at + 1]);
        if (!is_word(text.ptr[at]) && !hyphen) {
            break;
        }
        *ret_plain &= hyphen || ascii_is_digit(text.ptr[at]);
    }
    return at;
}

static void count_digits(Str text, Chunk *chunk)
{
    size_t group = 0;
    for (size_t i = chunk->begin; i < chunk->end; i++) {
        bool digit = ascii_is_digit(text.ptr[i]);
        group = digit ? group + 1 : 0;
        chunk->digits += digit ? 1 : 0;
        chunk->group = group > chunk->group ? group : chunk->group;
    }
}

// Empty when the digit at `at` begins a word with letters.
static Chunk read_chunk(Str text, size_t at)
{
    Chunk chunk = {.begin = at, .end = at};
    while (at < text.len && at - chunk.end <= GAP_MAX) {
        bool plain = false;
        size_t end = ascii_is_digit(text.ptr[at]) ? word_end(text, at, &plain) : at;
        if (plain) {
            chunk.end = at = end;
        } else if (end == at && is_one_of(text.ptr[at], ".-()")) {
            at++;
        } else {
            break;
        }
    }
    count_digits(text, &chunk);
    return chunk;
}

// ---- what is no number ----

// The numbers between the separators; 0: it has others between, or too many.
static size_t split(Str text, char separator, int64_t parts[PARTS_MAX])
{
    size_t count = 0;
    Str part;
    while (str_split(&text, separator, &part)) {
        bool good = count < PARTS_MAX && str_to_i64(part, &parts[count]) &&
                    ascii_is_digit(part.ptr[0]) && parts[count] < PART_MAX;
        if (!good) {
            return 0;
        }
        count++;
    }
    return count;
}

static bool is_date(const int64_t parts[PARTS_MAX])
{
    int64_t year = parts[0] > 31 ? parts[0] : parts[2];
    int64_t day = parts[0] > 31 ? parts[2] : parts[0];
    return year >= 1970 && year < 2100 && day <= 31 && parts[1] <= 31;
}

static bool is_enhanced(const int64_t parts[PARTS_MAX])
{
    return (parts[0] == 2 || parts[0] == 4 || parts[0] == 5) && parts[1] < 1000 && parts[2] < 1000;
}

static bool is_ip(const int64_t parts[PARTS_MAX])
{
    return parts[0] < 256 && parts[1] < 256 && parts[2] < 256 && parts[3] < 256;
}

// "550-" before an enhanced code: a line of a reply.
static Str without_code(Str text)
{
    bool coded = text.len > 4 && text.ptr[3] == '-' && is_one_of(text.ptr[0], "245");
    return coded ? str_slice(text, 4, text.len) : text;
}

// Next to a colon that has a digit on its other side: "12" and "15.123456" of 12:30:15.123456.
static bool is_of_time(Str text, const Chunk *chunk)
{
    size_t at = chunk->begin;
    bool behind = at >= 2 && text.ptr[at - 1] == ':' && is_digit_at(text, at - 2);
    bool before =
        chunk->end < text.len && text.ptr[chunk->end] == ':' && is_digit_at(text, chunk->end + 1);
    bool fraction = behind && chunk->end - at > 3 && text.ptr[at + 2] == '.' &&
                    chunk->digits + 1 == chunk->end - at;
    return (chunk->digits <= 2 && (behind || before)) || fraction;
}

static bool is_no_number(Str text, const Chunk *chunk)
{
    int64_t parts[PARTS_MAX] = {0};
    Str all = str_slice(text, chunk->begin, chunk->end);
    if (chunk->group > GROUP_MAX || is_of_time(text, chunk)) {
        return true;
    }
    if (split(all, '-', parts) == 3 && is_date(parts)) {
        return true;
    }
    size_t count = split(all, '.', parts);
    if ((count == 3 && is_date(parts)) || (count == 4 && is_ip(parts))) {
        return true;
    }
    return split(without_code(all), '.', parts) == 3 && is_enhanced(parts);
}

// ---- a number ----

// The digit that goes on behind a gap with a blank; `end`: there is none.
static size_t behind_gap(Str text, size_t end)
{
    size_t at = end;
    while (at < text.len && at - end < GAP_MAX && is_one_of(text.ptr[at], " -()")) {
        at++;
    }
    return is_digit_at(text, at) ? at : end;
}

// From the digit at `at`, as far as one number may go. true: it is one; else nothing before
// *ret_end is.
static bool read_number(Str text, size_t at, bool plus, size_t *ret_end)
{
    Chunk chunk = read_chunk(text, at);
    size_t digits = 0;
    bool whole = false; // a chunk is one by itself
    *ret_end = chunk.end;
    while (chunk.end > at && !is_no_number(text, &chunk)) {
        digits += chunk.digits;
        whole |= chunk.digits >= DIGITS_MIN;
        *ret_end = chunk.end;
        at = behind_gap(text, chunk.end);
        if (at == chunk.end) {
            break;
        }
        chunk = read_chunk(text, at);
    }
    return whole || digits >= (plus ? DIGITS_MIN : JOINED_MIN);
}

bool mask_next_number(Str text, size_t from, size_t *ret_begin, size_t *ret_end)
{
    size_t at = from;
    while (at < text.len) {
        bool plus = text.ptr[at] == '+';
        size_t digit = at + (plus ? 1 : 0);
        digit += plus && digit < text.len && text.ptr[digit] == '(' ? 1 : 0;
        if (is_digit_at(text, digit) && read_number(text, digit, plus, ret_end)) {
            *ret_begin = at;
            return true;
        }
        bool plain = true;
        size_t end = is_digit_at(text, digit) ? *ret_end : word_end(text, at, &plain);
        end = end == digit ? word_end(text, digit, &plain) : end; // it begins a word with letters
        at = end > at ? end : at + 1;
    }
    return false;
}
