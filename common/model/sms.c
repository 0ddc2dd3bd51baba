// SPDX-License-Identifier: Apache-2.0
#include "common/model/sms.h"

// 3GPP TS 23.038, 6.2.1: what is not ASCII in the basic table.
static const uint16_t basic[] = {
    0x00a3, 0x00a5, 0x00e8, 0x00e9, 0x00f9, 0x00ec, 0x00f2, 0x00c7, 0x00d8, 0x00f8, 0x00c5,
    0x00e5, 0x0394, 0x03a6, 0x0393, 0x039b, 0x03a9, 0x03a0, 0x03a8, 0x03a3, 0x0398, 0x039e,
    0x00c6, 0x00e6, 0x00df, 0x00c9, 0x00a4, 0x00a1, 0x00c4, 0x00d6, 0x00d1, 0x00dc, 0x00a7,
    0x00bf, 0x00e4, 0x00f6, 0x00f1, 0x00fc, 0x00e0,
};

enum { NOT_GSM = 0, BASIC = 1, EXTENDED = 2, EURO = 0x20ac };

// How many septets the character takes; NOT_GSM: it has none.
static uint32_t septets(uint32_t c)
{
    if (c == '\n' || c == '\r' || (c >= 0x20 && c < 0x7f)) {
        switch (c) {
        case '^':
        case '{':
        case '}':
        case '\\':
        case '[':
        case '~':
        case ']':
        case '|':
            return EXTENDED;
        case '`':
            return NOT_GSM;
        default:
            return BASIC;
        }
    }
    if (c == EURO || c == '\f') {
        return EXTENDED;
    }
    for (size_t i = 0; i < sizeof basic / sizeof *basic; i++) {
        if (basic[i] == c) {
            return BASIC;
        }
    }
    return NOT_GSM;
}

// Takes the first character off *rest.
static uint32_t take(Str *rest)
{
    size_t len = str_utf8_step(*rest);
    uint32_t c = (unsigned char)rest->ptr[0];
    if (len == 0) {
        *rest = str_slice(*rest, 1, rest->len);
        return 0xfffd;
    }
    if (len > 1) {
        c &= 0x7fu >> len;
    }
    for (size_t i = 1; i < len; i++) {
        c = (c << 6) | ((unsigned char)rest->ptr[i] & 0x3fu);
    }
    *rest = str_slice(*rest, len, rest->len);
    return c;
}

static uint32_t units_of(uint32_t c, bool ucs2)
{
    return !ucs2 ? septets(c) : c >= 0x10000 ? 2 : 1;
}

static bool is_gsm(Str text)
{
    while (text.len > 0) {
        if (septets(take(&text)) == NOT_GSM) {
            return false;
        }
    }
    return true;
}

// Parts of at most `part` units, no character cut in two.
static uint32_t count_parts(Str text, bool ucs2, uint32_t part)
{
    uint32_t parts = 1;
    uint32_t filled = 0;
    while (text.len > 0) {
        uint32_t units = units_of(take(&text), ucs2);
        if (filled + units > part) {
            parts++;
            filled = 0;
        }
        filled += units;
    }
    return parts;
}

SmsSize sms_measure(Str text)
{
    SmsSize size = {.ucs2 = !is_gsm(text)};
    for (Str rest = text; rest.len > 0;) {
        size.units += units_of(take(&rest), size.ucs2);
    }
    uint32_t single = size.ucs2 ? SMS_UCS2_SINGLE : SMS_GSM_SINGLE;
    if (size.units <= single) {
        size.segments = size.units > 0 ? 1 : 0;
    } else {
        size.segments = count_parts(text, size.ucs2, size.ucs2 ? SMS_UCS2_PART : SMS_GSM_PART);
    }
    return size;
}
