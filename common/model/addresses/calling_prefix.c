// SPDX-License-Identifier: Apache-2.0
// Source: ITU-T E.164, "List of ITU-T Recommendation E.164 assigned country codes".
#include "common/model/addresses/calling_prefix.h"

#include <string.h>

enum { NUMBER_MIN = 8 }; // '+' and seven digits

// The country codes of two digits; those of one are 1 and 7, all others have three.
static const char two_digits[] = " 20 27 30 31 32 33 34 36 39 40 41 43 44 45 46 47 48 49 51 52 53"
                                 " 54 55 56 57 58 60 61 62 63 64 65 66 81 82 84 86 90 91 92 93 94"
                                 " 95 98 ";

static size_t code_length(const char *digits)
{
    const char wanted[] = {' ', digits[0], digits[1], ' ', '\0'};
    if (digits[0] == '1') {
        return 4;
    }
    return digits[0] == '7' || strstr(two_digits, wanted) != NULL ? 2 : 3;
}

Str calling_prefix(Str number)
{
    bool good = number.len >= NUMBER_MIN && number.ptr[0] == '+' && number.ptr[1] != '0';
    for (size_t i = 1; good && i < number.len; i++) {
        good = ascii_is_digit(number.ptr[i]);
    }
    return good ? str_slice(number, 1, 1 + code_length(number.ptr + 1)) : STR_EMPTY;
}
