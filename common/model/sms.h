// SPDX-License-Identifier: Apache-2.0
// SMS: how many segments a text takes, and in which alphabet (3GPP TS 23.038): GSM 7-bit with its
// extension table when every character is in it, else UCS-2. Pure.
#pragma once

#include "common/base/str.h"

enum {
    SMS_GSM_SINGLE = 160, // septets of a text that fits one message
    SMS_GSM_PART = 153,   // of each part of a longer one
    SMS_UCS2_SINGLE = 70, // UTF-16 units
    SMS_UCS2_PART = 67,
};

typedef struct SmsSize {
    bool ucs2;         // else GSM 7-bit
    uint32_t units;    // septets (a character of the extension table takes two), or UTF-16 units
    uint32_t segments; // messages; 0 for an empty text
} SmsSize;

// `text` is UTF-8; a byte that is not counts as one character of UCS-2. Neither an escaped septet
// nor a surrogate pair is cut in two, which may leave a segment one unit short.
SmsSize sms_measure(Str text);
