// SPDX-License-Identifier: Apache-2.0
// Formats: numbers, currencies, dates, plural rules and letter case as a locale has them, by ICU.
// Opening an ICU formatter takes longer than a whole render, so they are kept, one for each locale
// and pattern, at most FORMATS_MAX. Pure but for that memory: locale and zone are arguments.
#pragma once

#include "common/base/buf.h"
#include "common/base/error.h"

enum {
    FORMATS_MAX = 256,
    FORMAT_PATTERN_MAX = 128,
    FORMAT_NUMBER_MAX = 64,   // bytes of a number, with its NUL
    FORMAT_EXPONENT_MAX = 30, // of a number that is a text: ICU writes every digit of 1e999999999
};

typedef struct Formats Formats;

Formats *formats_new(void);
void formats_free(Formats *formats); // NULL-safe
size_t formats_count(const Formats *formats);
// How many formatters were opened so far, which is what takes time.
size_t formats_opened(const Formats *formats);

// Is it a number as text ("-12", "12.50", "1e3") that can be written out? Else *ret_why says what
// it should be, if it is one.
bool format_is_decimal(Str text, const char **ret_why);

typedef struct NumberFormat {
    Str locale;
    Str style;    // "", "decimal", "integer", "percent", "compact", or a pattern: "#,##0.00"
    Str currency; // ISO 4217; empty: none
    int digits;   // behind the decimal point; below 0: as the style has it
} NumberFormat;

// `decimal` is a number as text ("-12.50", "1e3"), or what a double prints as. ERROR_PERMANENT
// names what is wrong.
bool format_number(Formats *formats, const NumberFormat *format, Str decimal, Buf *out, Error *err);

typedef struct DateFormat {
    Str locale;
    Str zone;  // IANA; empty: UTC
    Str style; // "short", "medium" (also when empty), "long", "full", "none", "datetime", "iso",
               // "skeleton:yMMMd", or a pattern: "d MMMM y"
    Str time;  // the same words for the time of day; empty: none
} DateFormat;

// `at_ms` since 1970. ERROR_PERMANENT: a zone that does not exist, a pattern that is none.
bool format_date(Formats *formats, const DateFormat *format, double at_ms, Buf *out, Error *err);
// "one", "few", "other" ... of the number, by the rules of the locale.
bool format_plural(
    Formats *formats, Str locale, bool ordinal, double number, char out[16], Error *err);
bool format_case(Formats *formats, Str locale, bool upper, Str text, Buf *out, Error *err);
// How many bytes of `text` are its first `count` characters; a base character and the marks that
// combine with it are not taken apart.
size_t format_prefix(Str text, size_t count);
// How many such characters it has, at most `max`.
size_t format_length(Str text, size_t max);
bool format_zone_exists(Str zone);
// Is the locale's script written from right to left?
bool format_is_rtl(Str locale);
