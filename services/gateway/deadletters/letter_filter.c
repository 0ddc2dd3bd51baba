// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/deadletters/letter_filter.h"

// The first word of a reason: "unknown_outcome: this mail may have been sent ...".
static Str first_word(Str reason)
{
    size_t len = 0;
    while (len < reason.len && len < LETTER_WORD_MAX &&
           ((reason.ptr[len] >= 'a' && reason.ptr[len] <= 'z') || reason.ptr[len] == '_')) {
        len++;
    }
    bool whole = len > 0 && len < reason.len && reason.ptr[len] == ':';
    return whole ? str_slice(reason, 0, len) : STR("other");
}

Str letter_reason(const Letter *letter)
{
    if (letter->body == NULL) {
        return STR("unreadable");
    }
    Str code = str_from(letter->body->reason_code);
    return code.len > 0 ? code : first_word(str_from(letter->body->reason));
}

const Stentor__V1__Attempt *letter_attempt(const Letter *letter)
{
    size_t count = letter->body != NULL ? letter->body->n_attempts : 0;
    return count > 0 ? letter->body->attempts[count - 1] : NULL;
}

static bool fits(Str wanted, const char *is)
{
    return wanted.len == 0 || str_eq(wanted, str_from(is));
}

bool letter_matches(const LetterFilter *filter, const Letter *letter)
{
    const Stentor__V1__Attempt *attempt = letter_attempt(letter);
    return letter->stored_at_us >= filter->since_us &&
           (filter->until == 0 || letter->sequence <= filter->until) &&
           (filter->stage.len == 0 || str_eq(filter->stage, letter->stage)) &&
           (filter->reason.len == 0 || str_eq(filter->reason, letter_reason(letter))) &&
           fits(filter->vendor, attempt != NULL ? attempt->vendor : "") &&
           fits(filter->code, attempt != NULL ? attempt->code : "") &&
           fits(filter->enhanced_code, attempt != NULL ? attempt->enhanced_code : "");
}

const char *letter_class_name(LetterClass class)
{
    switch (class) {
    case LETTER_SAFE:
        return "safe";
    case LETTER_DOUBLES:
        return "may_double";
    case LETTER_STAYS:
        break;
    }
    return "refused";
}

LetterClass letter_class(
    const Letter *letter, const ResendRules *rules, Arena *arena, Error *ret_why)
{
    Resend resend;
    Error ignored = {0};
    ResendRules with = *rules;
    with.by_tenant = true;
    with.may_double = false;
    if (letter_resend(letter, &with, arena, &resend, ret_why)) {
        return LETTER_SAFE;
    }
    with.may_double = true;
    return letter_resend(letter, &with, arena, &resend, &ignored) ? LETTER_DOUBLES : LETTER_STAYS;
}
