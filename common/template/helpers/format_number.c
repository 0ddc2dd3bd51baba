// SPDX-License-Identifier: Apache-2.0
#include "common/template/helpers/format_internal.h"

#include <stdlib.h>
#include <string.h>
#include <unicode/uchar.h>
#include <unicode/uloc.h>
#include <unicode/unum.h>
#include <unicode/ustring.h>

// "1e3": the digits behind the 'e', at most FORMAT_EXPONENT_MAX.
static bool is_exponent(Str text, const char **ret_why)
{
    int64_t exponent = 0;
    Str digits = str_starts(text, STR("+")) ? str_slice(text, 1, text.len) : text;
    if (digits.len == 0 || (digits.ptr[0] == '-' && digits.len != text.len) ||
        !str_to_i64(digits, &exponent)) {
        return false;
    }
    *ret_why = "a number with an exponent from -30 to 30";
    return exponent >= -FORMAT_EXPONENT_MAX && exponent <= FORMAT_EXPONENT_MAX;
}

bool format_is_decimal(Str text, const char **ret_why)
{
    size_t at = text.len > 0 && (text.ptr[0] == '-' || text.ptr[0] == '+') ? 1 : 0;
    size_t digits = 0;
    bool point = false;
    *ret_why = "a number";
    for (; at < text.len && text.len < FORMAT_NUMBER_MAX; at++) {
        char c = text.ptr[at];
        if (c >= '0' && c <= '9') {
            digits++;
        } else if (c == '.' && !point) {
            point = true;
        } else if ((c == 'e' || c == 'E') && digits > 0) {
            return is_exponent(str_slice(text, at + 1, text.len), ret_why);
        } else {
            return false;
        }
    }
    return digits > 0 && text.len < FORMAT_NUMBER_MAX;
}

static bool number_style(Str style, UNumberFormatStyle *ret)
{
    static const struct {
        const char *name;
        UNumberFormatStyle style;
    } names[] = {
        {"", UNUM_DECIMAL},
        {"decimal", UNUM_DECIMAL},
        {"integer", UNUM_DECIMAL},
        {"percent", UNUM_PERCENT},
        {"compact", UNUM_DECIMAL_COMPACT_SHORT},
        {"scientific", UNUM_SCIENTIFIC},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (str_eq(style, str_from(names[i].name))) {
            *ret = names[i].style;
            return true;
        }
    }
    *ret = UNUM_PATTERN_DECIMAL;
    return false;
}

static bool is_currency(Str code)
{
    for (size_t i = 0; i < code.len; i++) {
        if (code.ptr[i] < 'A' || code.ptr[i] > 'Z') {
            return false;
        }
    }
    return code.len == 3;
}

static UNumberFormat *open_number(const NumberFormat *format, Error *err)
{
    char locale[LOCALE_SIZE];
    UChar pattern[FORMAT_PATTERN_MAX];
    UErrorCode status = U_ZERO_ERROR;
    UNumberFormatStyle style = UNUM_CURRENCY;
    int32_t pattern_len = 0;
    format_locale_id(format->locale, locale);
    if (format->currency.len == 0 && !number_style(format->style, &style)) {
        bool is_pattern = str_find(format->style, '0') >= 0 || str_find(format->style, '#') >= 0;
        pattern_len = is_pattern ? format_to_units(format->style, pattern, FORMAT_PATTERN_MAX) : -1;
        if (pattern_len < 0) {
            (void)format_fail(err, "number style", U_ILLEGAL_ARGUMENT_ERROR);
            return NULL;
        }
    }
    UNumberFormat *icu = unum_open(style, pattern, pattern_len, locale, NULL, &status);
    if (U_SUCCESS(status) && format->currency.len > 0) {
        UChar code[4];
        format_to_units(format->currency, code, 4);
        unum_setTextAttribute(icu, UNUM_CURRENCY_CODE, code, 3, &status);
    }
    if (U_FAILURE(status)) {
        unum_close(icu);
        (void)format_fail(err, "number style", status);
        return NULL;
    }
    int digits = str_eq(format->style, STR("integer")) && format->digits < 0 ? 0 : format->digits;
    if (digits >= 0) {
        unum_setAttribute(icu, UNUM_FRACTION_DIGITS, digits);
    }
    return icu;
}

static UNumberFormat *use_number(Formats *formats, const NumberFormat *format, Error *err)
{
    Key key;
    char digits = (char)('0' + (format->digits < 0 ? -1 : format->digits));
    if (format->currency.len > 0 && !is_currency(format->currency)) {
        (void)error_set(
            err, ERROR_PERMANENT, "the currency is none: expected three capitals, 'EUR'");
        return NULL;
    }
    if (format->style.len >= FORMAT_PATTERN_MAX ||
        !format_make_key(
            &key, 'n', format->locale, format->style, format->currency, str_of(&digits, 1))) {
        (void)error_set(err, ERROR_PERMANENT, "the locale or the number style is too long");
        return NULL;
    }
    UNumberFormat *icu = formats_find(formats, key.view);
    if (icu == NULL && (icu = open_number(format, err)) != NULL) {
        formats_keep(formats, key.view, KIND_NUMBER, (void *)icu);
    }
    return icu;
}

bool format_number(Formats *formats, const NumberFormat *format, Str decimal, Buf *out, Error *err)
{
    UNumberFormat *icu = use_number(formats, format, err);
    if (icu == NULL) {
        return false;
    }
    UChar units[UNITS_MAX];
    UErrorCode status = U_ZERO_ERROR;
    int32_t len =
        unum_formatDecimal(icu, decimal.ptr, (int32_t)decimal.len, units, UNITS_MAX, NULL, &status);
    if (U_FAILURE(status)) {
        return format_fail(err, "number", status);
    }
    return format_append_units(units, len, out, err);
}
