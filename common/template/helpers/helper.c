// SPDX-License-Identifier: Apache-2.0
#include "common/template/helpers/helper.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/template/helpers/helper_args.h"
#include "common/template/helpers/helper_compare.h"

// Work of a call beyond that of an ordinary operation.
enum {
    FORMAT_STEPS = 20,
    OPEN_STEPS = 2000,         // of a formatter that was not there yet
    CHARACTER_STEP_BYTES = 32, // of a text whose characters are asked one by one
    TIME_MAX = 64,             // bytes of an RFC 3339 time
    TRUNCATE_MAX = 100000,
    ASSET_STEPS = 4,
};

// ---- text ----

static bool change_case(HelperRun *run, const HelperArgs *args, bool upper, Value *ret, Error *err)
{
    Str text;
    Str locale = run->locale;
    return helper_text_of(run, &args->params[0], &text, err) &&
           helper_named_text(run, args, "locale", &locale, err) &&
           format_case(run->formats, locale, upper, text, run->work, err) &&
           helper_give_text(run, ret, err);
}

static bool apply_upper(HelperRun *run, const HelperArgs *args, Value *ret, Error *err)
{
    return change_case(run, args, true, ret, err);
}

static bool apply_lower(HelperRun *run, const HelperArgs *args, Value *ret, Error *err)
{
    return change_case(run, args, false, ret, err);
}

// {{truncate text 20}}: at most 20 characters, the mark of omission counted.
static bool apply_truncate(HelperRun *run, const HelperArgs *args, Value *ret, Error *err)
{
    Str text;
    Str mark = STR("\xe2\x80\xa6");
    const Value *length = &args->params[1];
    if (length->kind != VALUE_INT || length->number < 1 || length->number > TRUNCATE_MAX) {
        return error_set(
            err, ERROR_PERMANENT, "the length is a whole number from 1 to %d", TRUNCATE_MAX);
    }
    if (!helper_text_of(run, &args->params[0], &text, err) ||
        (args->count > 2 && !helper_text_of(run, &args->params[2], &mark, err))) {
        return false;
    }
    size_t max = (size_t)length->number;
    run->steps += (uint32_t)((text.len + mark.len) / CHARACTER_STEP_BYTES);
    if (format_prefix(text, max) == text.len) {
        *ret = (Value){.kind = VALUE_TEXT, .text = text};
        return true;
    }
    Str kept = str_slice(text, 0, format_prefix(text, max - format_length(mark, max)));
    while (kept.len > 0 && kept.ptr[kept.len - 1] == ' ') {
        kept.len--;
    }
    buf_str(run->work, kept);
    buf_str(run->work, str_slice(mark, 0, format_prefix(mark, max)));
    return helper_give_text(run, ret, err);
}

// RFC 3986: every byte but the unreserved ones, so that it is one value of a query or one segment.
static bool apply_url(HelperRun *run, const HelperArgs *args, Value *ret, Error *err)
{
    static const char hex[] = "0123456789ABCDEF";
    Str text;
    if (!helper_text_of(run, &args->params[0], &text, err)) {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        bool unreserved =
            ascii_is_alnum(text.ptr[i]) || c == '-' || c == '.' || c == '_' || c == '~';
        if (unreserved) {
            buf_char(run->work, (char)c);
        } else {
            char triple[3] = {'%', hex[c >> 4], hex[c & 15]};
            buf_append(run->work, triple, 3);
        }
    }
    return helper_give_text(run, ret, err);
}

// ---- assets ----

static bool apply_asset(HelperRun *run, const HelperArgs *args, Value *ret, Error *err)
{
    Str name;
    run->steps += ASSET_STEPS;
    if (run->assets == NULL) {
        return error_set(err, ERROR_PERMANENT, "there are no assets here");
    }
    if (!helper_text_of(run, &args->params[0], &name, err)) {
        return false;
    }
    if (!run->assets->find(run->assets->ctx, name, run->work, err)) {
        return !args->first_is_written &&
               error_set(
                   err, err->kind,
                   "the asset that the argument names is not there, or assets have no address");
    }
    return helper_give_text(run, ret, err);
}

// ---- numbers ----

// What is not there formats as nothing, as it prints as nothing.
static bool nothing_for_nothing(const HelperArgs *args, Value *ret)
{
    if (!helper_is_nothing(&args->params[0])) {
        return false;
    }
    *ret = (Value){.kind = VALUE_TEXT, .text = STR_EMPTY};
    return true;
}

static bool apply_number(HelperRun *run, const HelperArgs *args, Value *ret, Error *err)
{
    NumberFormat format = {.locale = run->locale, .style = STR_EMPTY, .currency = STR_EMPTY};
    Str decimal;
    run->steps += FORMAT_STEPS;
    if (nothing_for_nothing(args, ret)) {
        return true;
    }
    return helper_second_text(run, args, &format.style, err) &&
           helper_named_text(run, args, "locale", &format.locale, err) &&
           helper_digits_of(run, args, &format.digits, err) &&
           helper_decimal_of(run, &args->params[0], &decimal, err) &&
           format_number(run->formats, &format, decimal, run->work, err) &&
           helper_give_text(run, ret, err);
}

// {{currency 1999 "EUR" minor=true}}: the amount is in the smallest coin.
static bool minor_amount(HelperRun *run, Str code, Str *decimal, Error *err)
{
    // Those of ISO 4217 without two digits behind the point; the others have them.
    static const char none[] =
        "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF";
    static const char three[] = "BHD IQD JOD KWD LYD OMR TND";
    char copy[4];
    int digits = 2;
    if (str_to_c(code, copy, sizeof copy) && code.len == 3) {
        digits = strstr(none, copy) != NULL ? 0 : strstr(three, copy) != NULL ? 3 : 2;
    }
    for (size_t i = 0; i < decimal->len; i++) {
        char c = decimal->ptr[i];
        if ((c < '0' || c > '9') && !(i == 0 && c == '-')) {
            return error_set(err, ERROR_PERMANENT, "minor=true wants a whole number of coins");
        }
    }
    Value text;
    buf_printf(run->work, STR_FMT "e-%d", STR_ARG(*decimal), digits);
    if (!helper_give_text(run, &text, err)) {
        return false;
    }
    buf_clear(run->work);
    *decimal = text.text;
    return true;
}

static bool apply_currency(HelperRun *run, const HelperArgs *args, Value *ret, Error *err)
{
    NumberFormat format = {.locale = run->locale, .style = STR_EMPTY, .currency = STR_EMPTY};
    Str decimal;
    const Value *minor = helper_named(args, "minor");
    run->steps += FORMAT_STEPS;
    if (nothing_for_nothing(args, ret)) {
        return true;
    }
    if (!helper_second_text(run, args, &format.currency, err) ||
        !helper_named_text(run, args, "locale", &format.locale, err) ||
        !helper_digits_of(run, args, &format.digits, err) ||
        !helper_decimal_of(run, &args->params[0], &decimal, err)) {
        return false;
    }
    if (format.currency.len == 0) {
        return error_set(
            err, ERROR_PERMANENT, "the currency is missing: {{currency amount 'EUR'}}");
    }
    if (minor != NULL && helper_is_true(minor) &&
        !minor_amount(run, format.currency, &decimal, err)) {
        return false;
    }
    return format_number(run->formats, &format, decimal, run->work, err) &&
           helper_give_text(run, ret, err);
}

// The text of the number's category: helper_named (one="..." other="..."), or {{plural n "item"
// "items"}}.
static const Value *plural_choice(const HelperArgs *args, const char *category, double number)
{
    const Value *choice = NULL;
    if (args->count == 3) {
        return &args->params[strcmp(category, "one") == 0 ? 1 : 2];
    }
    // "zero" is said for 0 in any language, as authors expect of it.
    if (!(number < 0) && !(number > 0)) {
        choice = helper_named(args, "zero");
    }
    choice = choice != NULL ? choice : helper_named(args, category);
    return choice != NULL ? choice : helper_named(args, "other");
}

// '#' becomes the number.
static bool plural_text(HelperRun *run, Str words, Str number, Value *ret, Error *err)
{
    for (size_t i = 0; i < words.len; i++) {
        if (words.ptr[i] == '#') {
            buf_str(run->work, number);
        } else {
            buf_char(run->work, words.ptr[i]);
        }
    }
    return helper_give_text(run, ret, err);
}

static bool apply_plural(HelperRun *run, const HelperArgs *args, Value *ret, Error *err)
{
    Str locale = run->locale;
    Str words;
    Str decimal;
    double number = 0;
    char category[16];
    const Value *ordinal = helper_named(args, "ordinal");
    Value written;
    run->steps += 2 * FORMAT_STEPS;
    if (args->count == 2) {
        return error_set(
            err, ERROR_PERMANENT,
            "expected {{plural n 'item' 'items'}} or one='item' other='items'");
    }
    if (!helper_named_text(run, args, "locale", &locale, err) ||
        !helper_decimal_of(run, &args->params[0], &decimal, err) ||
        !helper_real_of(run, &args->params[0], &number) ||
        !format_plural(
            run->formats, locale, ordinal != NULL && helper_is_true(ordinal), number, category,
            err)) {
        return false;
    }
    const Value *choice = plural_choice(args, category, number);
    if (choice == NULL) {
        return error_set(err, ERROR_PERMANENT, "other= is missing, which this number needs");
    }
    NumberFormat format = {locale, STR_EMPTY, STR_EMPTY, -1};
    if (!helper_text_of(run, choice, &words, err) ||
        !format_number(run->formats, &format, decimal, run->work, err) ||
        !helper_give_text(run, &written, err)) {
        return false;
    }
    buf_clear(run->work);
    return plural_text(run, words, written.text, ret, err);
}

// ---- dates ----

// "2026-11-21": a day, whatever the zone.
static bool day_of(Str text, double *ret_ms)
{
    char copy[40];
    int64_t at_us = 0;
    if (text.len != 10 || !str_to_c(text, copy, sizeof copy)) {
        return false;
    }
    memcpy(copy + 10, "T12:00:00Z", 11);
    if (!clock_parse(str_from(copy), &at_us)) {
        return false;
    }
    *ret_ms = (double)at_us / 1000;
    return true;
}

// RFC 3339, a day, or a number: seconds since 1970, from 100,000,000,000 on milliseconds.
static bool instant_of(
    HelperRun *run, const Value *value, double *ret_ms, bool *ret_is_day, Error *err)
{
    int64_t at_us = 0;
    double number = 0;
    *ret_is_day = false;
    if (value->kind == VALUE_TEXT && day_of(value->text, ret_ms)) {
        *ret_is_day = true;
        return true;
    }
    bool short_text = value->kind == VALUE_TEXT && value->text.len < TIME_MAX;
    if (short_text && clock_parse(value->text, &at_us)) {
        *ret_ms = (double)at_us / 1000;
        return true;
    }
    bool may = value->kind == VALUE_INT || value->kind == VALUE_REAL;
    if (!may || !helper_real_of(run, value, &number) || !(fabs(number) < 1e14)) {
        return error_set(
            err, ERROR_PERMANENT,
            "expected a time: RFC 3339 ('2026-11-21T18:30:00Z'), a day ('2026-11-21') or "
            "seconds since 1970, got %s",
            helper_kind_name(value));
    }
    *ret_ms = fabs(number) >= 1e11 ? number : number * 1000;
    return true;
}

static bool apply_date(HelperRun *run, const HelperArgs *args, Value *ret, Error *err)
{
    DateFormat format = {run->locale, run->zone, STR_EMPTY, STR_EMPTY};
    double at_ms = 0;
    bool is_day = false;
    run->steps += FORMAT_STEPS;
    if (nothing_for_nothing(args, ret)) {
        return true;
    }
    if (!helper_second_text(run, args, &format.style, err) ||
        !helper_named_text(run, args, "time", &format.time, err) ||
        !helper_named_text(run, args, "zone", &format.zone, err) ||
        !helper_named_text(run, args, "locale", &format.locale, err) ||
        !instant_of(run, &args->params[0], &at_ms, &is_day, err)) {
        return false;
    }
    if (is_day) {
        format.zone = STR("UTC");
    }
    return format_date(run->formats, &format, at_ms, run->work, err) &&
           helper_give_text(run, ret, err);
}

// ---- the table ----

// clang-format off
static const Helper helpers[] = {
    // name     min max helper_named                                        may_miss condition
    {"date",      1, 2, "time zone locale",                           false, false, apply_date},
    {"number",    1, 2, "digits locale",                              false, false, apply_number},
    {"currency",  1, 2, "digits minor locale",                        false, false, apply_currency},
    {"plural",    1, 3, "zero one two few many other ordinal locale", false, false, apply_plural},
    {"eq",        2, 2, "",                                           true,  true,  helper_eq},
    {"ne",        2, 2, "",                                           true,  true,  helper_ne},
    {"lt",        2, 2, "",                                           true,  true,  helper_lt},
    {"gt",        2, 2, "",                                           true,  true,  helper_gt},
    {"lte",       2, 2, "",                                           true,  true,  helper_le},
    {"gte",       2, 2, "",                                           true,  true,  helper_ge},
    {"and",       1, 8, "",                                           true,  true,  helper_and},
    {"or",        1, 8, "",                                           true,  true,  helper_or},
    {"not",       1, 1, "",                                           true,  true,  helper_not},
    {"default",   2, 8, "",                                           true,  false, helper_default},
    {HELPER_ASSET, 1, 1, "",                                          false, false, apply_asset},
    {"url",       1, 1, "",                                           false, false, apply_url},
    {"upper",     1, 1, "locale",                                     false, false, apply_upper},
    {"lower",     1, 1, "locale",                                     false, false, apply_lower},
    {"truncate",  2, 3, "",                                           false, false, apply_truncate},
    {"lookup",    2, 2, "",                                           true,  false, helper_lookup},
    {"log",       0, 8, "level",                                      true,  false, helper_log},
};
// clang-format on

bool helper_apply(
    const Helper *helper, HelperRun *run, const HelperArgs *args, Value *ret, Error *err)
{
    size_t opened = formats_opened(run->formats);
    run->steps = 1;
    bool ok = helper->apply(run, args, ret, err);
    run->steps += (uint32_t)(OPEN_STEPS * (formats_opened(run->formats) - opened));
    return ok || error_wrap(err, "'%s'", helper->name);
}

const Helper *helper_find(Str name)
{
    for (size_t i = 0; i < sizeof helpers / sizeof *helpers; i++) {
        if (str_eq(name, str_from(helpers[i].name))) {
            return &helpers[i];
        }
    }
    return NULL;
}

bool helper_takes(const Helper *helper, Str name)
{
    Str rest = str_from(helper->named);
    for (Str one; str_split(&rest, ' ', &one);) {
        if (one.len > 0 && str_eq(one, name)) {
            return true;
        }
    }
    return false;
}
