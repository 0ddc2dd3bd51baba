// SPDX-License-Identifier: Apache-2.0
// Str: a slice of bytes that another object owns. Never NUL-terminated by promise, never freed
// here.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/poison.h"

typedef struct Str {
    const char *ptr;
    size_t len;
} Str;

#define STR(literal) ((Str){("" literal), sizeof("" literal) - 1})
#define STR_EMPTY ((Str){"", 0})
#define STR_FMT "%.*s"
// The address sanitizer does not look at what "%.*s" reads, so a build with it reads the slice
// first: one whose owner was freed ends the test that prints it.
#ifdef STENTOR_ASAN
#define STR_ARG(s) (int)(s).len, str_read(s)
#else
#define STR_ARG(s) (int)(s).len, (s).ptr
#endif

// Of ASCII, in every locale.
static inline bool ascii_is_digit(char c)
{
    return c >= '0' && c <= '9';
}
static inline bool ascii_is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
static inline bool ascii_is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

const char *str_read(Str s);    // reads every byte, returns s.ptr; for STR_ARG
Str str_from(const char *text); // NULL gives the empty slice
Str str_of(const void *ptr, size_t len);
bool str_eq(Str a, Str b);
bool str_eq_nocase(Str a, Str b); // ASCII only
int str_cmp(Str a, Str b);        // memcmp order, shorter first
bool str_starts(Str s, Str prefix);
bool str_ends(Str s, Str suffix);
Str str_slice(Str s, size_t from, size_t to); // clamped
Str str_trim(Str s);                          // ASCII white space
ptrdiff_t str_find(Str s, char c);            // -1: not there
bool str_contains(Str s, Str part);           // false when `part` is empty
bool str_contains_nocase(Str s, Str part);    // the same; ASCII only
// Cuts *rest at the next `sep`: *ret_token is what stood before it. false when *rest was used up.
bool str_split(Str *rest, char sep, Str *ret_token);
// Decimal, optional '-', whole slice, no overflow.
bool str_to_i64(Str s, int64_t *ret_value);
// Copies into `out` with a NUL; false (and an empty out) when it does not fit.
bool str_to_c(Str s, char *out, size_t size);
// true when every byte belongs to well-formed UTF-8 (RFC 3629) and none is NUL.
bool str_is_utf8(Str s);
// Length of the well-formed UTF-8 sequence that `s` begins with (a NUL counts as one); 0: there is
// none.
size_t str_utf8_step(Str s);
// A character, at most U+10FFFF, as UTF-8; returns how many bytes.
enum { STR_UTF8_MAX = 4 };
size_t str_utf8_write(uint32_t character, char out[STR_UTF8_MAX]);
// true when it has a byte below 0x20 or 0x7f (CR, LF, TAB, NUL ...): not fit for a header or a
// name.
bool str_has_control(Str s);
// Length of the bidirectional control that `s` begins with (U+061C, U+200E/F, U+202A-202E,
// U+2066-2069), which make a name or an address show as another; 0: there is none.
size_t str_bidi_step(Str s);
bool str_has_bidi(Str s);
uint64_t str_hash(Str s); // FNV-1a 64, for tables in memory only
// How many bytes are to be put in, left out, changed or swapped with their neighbour to make one of
// the other (optimal string alignment). SIZE_MAX when one is longer than STR_DISTANCE_MAX.
enum { STR_DISTANCE_MAX = 96 };
size_t str_distance(Str a, Str b);
