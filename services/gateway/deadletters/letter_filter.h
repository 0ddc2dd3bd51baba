// SPDX-License-Identifier: Apache-2.0
// Which dead letters of a tenant a call is about, and what groups them. Pure.
#pragma once

#include "common/base/arena.h"
#include "common/deadletter/resend_rules.h"

enum { LETTER_WORD_MAX = 64 }; // bytes of a filter's value

typedef struct LetterFilter {
    Str stage, reason, vendor, code, enhanced_code; // empty: any
    int64_t since_us;                               // stored then or later
    uint64_t until;                                 // the last sequence; 0: any
} LetterFilter;

// Why it died, as groups and filters have it: its reason_code, else what its reason begins with
// ("unknown_outcome"), else "other".
Str letter_reason(const Letter *letter);
// The last attempt that the letter shows; NULL: none was made.
const Stentor__V1__Attempt *letter_attempt(const Letter *letter);
bool letter_matches(const LetterFilter *filter, const Letter *letter);

// What becomes of it when the tenant has it sent again.
typedef enum LetterClass {
    LETTER_SAFE,
    LETTER_DOUBLES, // with may_double only: the recipient may get it twice
    LETTER_STAYS,   // refused either way
} LetterClass;

const char *letter_class_name(LetterClass class); // "safe", "may_double", "refused"
// may_double of the rules does not count. *ret_why: of LETTER_DOUBLES and LETTER_STAYS.
LetterClass letter_class(
    const Letter *letter, const ResendRules *rules, Arena *arena, Error *ret_why);
