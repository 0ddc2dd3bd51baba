// SPDX-License-Identifier: Apache-2.0
// Phone numbers in a text that others wrote. Pure; linear in the text.
#pragma once

#include "common/base/str.h"

// The first phone number that begins at `from` or behind it: an optional '+' and 7 digits or more,
// between them blanks, dots, hyphens, parentheses; 9 or more when only blanks join short groups and
// there is no '+'. None is: a word with letters (ids, hexadecimal), a group of more than 15 digits,
// a date, a time, an IPv4 address, an enhanced code (5.1.1, 550-5.1.1). false: there is none.
bool mask_next_number(Str text, size_t from, size_t *ret_begin, size_t *ret_end);
