// SPDX-License-Identifier: Apache-2.0
#include "common/template/helper.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"

// Work of a call beyond that of an ordinary operation.
enum {
    FORMAT_STEPS = 20,
    OPEN_STEPS = 2000,         // of a formatter that was not there yet
    CHARACTER_STEP_BYTES = 32, // of a text whose characters are asked one by one
    TIME_MAX = 64,             // bytes of an RFC 3339 time
    TRUNCATE_MAX = 100000,
    DIGITS_MAX = 20
};

// ---- arguments ----

static const Value *named(const HelperArgs *args, const char *name)
{
    for (size_t i = 0; i < args->named_count; i++) {
        if (str_eq(args->names[i], str_from(name))) {
            return &args->named[i];
        }
    }
    return NULL;
}

static bool is_nothing(const Value *value)
{
    return value->kind == VALUE_NONE || value->kind == VALUE_NULL;
}

static bool is_true(const Value *value)
{
    return !value_is_empty(value) && !value_is_zero(value);
}

static Value truth(bool yes)
{
    return (Value){.kind = VALUE_BOOL, .truth = yes};
}

// Copies what stands in run->work into the render's memory.
static bool give_text(HelperRun *run, Value *ret, Error *err)
{
    if (run->work->full || run->work->len > HELPER_TEXT_MAX - run->made) {
        return error_set(
            err, ERROR_PERMANENT, "helpers made more than %d bytes of text in one render",
            HELPER_TEXT_MAX);
    }
    run->made += run->work->len;
    run->steps += steps_of(run->work->len);
    *ret = (Value){.kind = VALUE_TEXT, .text = arena_str(run->arena, buf_view(run->work))};
    return true;
}

// An argument as text: a text as it is, anything else as it prints.
static bool text_of(HelperRun *run, const Value *value, Str *ret, Error *err)
{
    if (value->kind == VALUE_TEXT) {
        *ret = value->text;
        run->steps += steps_of(ret->len);
        return true;
    }
    Value text;
    Print print = {.escape = TEMPLATE_ESCAPE_NONE, .out = run->work};
    bool printed = value_print(&print, value, err);
    run->steps += print.steps;
    if (!printed || !give_text(run, &text, err)) {
        return false;
    }
    buf_clear(run->work);
    *ret = text.text;
    return true;
}

static bool named_text(
    HelperRun *run, const HelperArgs *args, const char *name, Str *ret, Error *err)
{
    const Value *value = named(args, name);
    return value == NULL || is_nothing(value) || text_of(run, value, ret, err);
}

// The argument behind the value, a style or a code.
static bool second_text(HelperRun *run, const HelperArgs *args, Str *ret, Error *err)
{
    return args->count < 2 || is_nothing(&args->params[1]) ||
           text_of(run, &args->params[1], ret, err);
}

static const char *kind_name(const Value *value)
{
    switch (value->kind) {
    case VALUE_NONE:
        return "nothing";
    case VALUE_NULL:
        return "null";
    case VALUE_BOOL:
        return "a boolean";
    case VALUE_INT:
    case VALUE_REAL:
        return "a number";
    case VALUE_TEXT:
        return "a text";
    case VALUE_ARRAY:
        return "an array";
    case VALUE_OBJECT:
    case VALUE_MERGED:
        break;
    }
    return "an object";
}

// A number, or a text that is one, as its digits. What a double prints as is bounded by itself.
static bool decimal_of(HelperRun *run, const Value *value, Str *ret, Error *err)
{
    const char *why = "a number";
    bool may = value->kind == VALUE_INT || value->kind == VALUE_REAL || value->kind == VALUE_TEXT;
    if (may && !text_of(run, value, ret, err)) {
        return false;
    }
    if (may) {
        *ret = str_trim(*ret);
    }
    if (!may || (value->kind == VALUE_TEXT && !format_is_decimal(*ret, &why))) {
        // What it is instead may be personal data, so only its kind is told.
        return error_set(err, ERROR_PERMANENT, "expected %s, got %s", why, kind_name(value));
    }
    return true;
}

static bool real_of(HelperRun *run, const Value *value, double *ret)
{
    char copy[FORMAT_NUMBER_MAX];
    const char *why = "";
    if (value->kind == VALUE_INT) {
        *ret = (double)value->number;
        return true;
    }
    if (value->kind == VALUE_REAL) {
        *ret = value->real;
        return true;
    }
    if (value->kind != VALUE_TEXT) {
        return false;
    }
    run->steps += steps_of(value->text.len);
    Str text = str_trim(value->text);
    if (!format_is_decimal(text, &why)) {
        return false;
    }
    *ret = str_to_c(text, copy, sizeof copy) ? strtod(copy, NULL) : 0;
    return true;
}

static bool digits_of(HelperRun *run, const HelperArgs *args, int *ret, Error *err)
{
    const Value *value = named(args, "digits");
    (void)run;
    *ret = -1;
    if (value == NULL || is_nothing(value)) {
        return true;
    }
    if (value->kind != VALUE_INT || value->number < 0 || value->number > DIGITS_MAX) {
        return error_set(
            err, ERROR_PERMANENT, "digits= is a whole number from 0 to %d", DIGITS_MAX);
    }
    *ret = (int)value->number;
    return true;
}

// ---- comparing ----

static bool same(HelperRun *run, const Value *a, const Value *b)
{
    bool numbers = (a->kind == VALUE_INT || a->kind == VALUE_REAL) &&
                   (b->kind == VALUE_INT || b->kind == VALUE_REAL);
    if (a->kind == VALUE_TEXT && b->kind == VALUE_TEXT) {
        run->steps += steps_of(a->text.len);
    }
    if (!numbers || a->kind == b->kind) {
        return value_same(a, b);
    }
    double x = 0;
    double y = 0;
    return real_of(run, a, &x) && real_of(run, b, &y) && !(x < y) && !(x > y);
}

static bool apply_eq(HelperRun *run, const HelperArgs *args, Value *ret, Error *err)
{
    (void)err;
    *ret = truth(same(run, &args->params[0], &args->params[1]));
    return true;
}

static bool apply_ne(HelperRun *run, const HelperArgs *args, Value *ret, Error *err)
{
    (void)err;
    *ret = truth(!same(run, &args->params[0], &args->params[1]));
    return true;
}

// Numbers (and texts beside a number) as numbers, two texts by their bytes. false: not comparable.
static bool compare(HelperRun *run, const HelperArgs *args, int *ret)
{
    const Value *a = &args->params[0];
    const Value *b = &args->params[1];
    double x = 0;
    double y = 0;
    if (a->kind == VALUE_TEXT && b->kind == VALUE_TEXT) {
        run->steps += steps_of(a->text.len);
        *ret = str_cmp(a->text, b->text);
        return true;
    }
    if (!real_of(run, a, &x) || !real_of(run, b, &y)) {
        return false;
    }
    *ret = x < y ? -1 : x > y ? 1 : 0;
    return true;
}

static bool apply_lt(HelperRun *run, const HelperArgs *args, Value *ret, Error *err)
{
    int order = 0;
    (void)err;
    *ret = truth(compare(run, args, &order) && order < 0);
    return true;
}

static bool apply_gt(HelperRun *run, const HelperArgs *args, Value *ret, Error *err)
{
    int order = 0;
    (void)err;
    *ret = truth(compare(run, args, &order) && order > 0);
    return true;
}

static bool apply_le(HelperRun *run, const HelperArgs *args, Value *ret, Error *err)
{
    int order = 0;
    (void)err;
    *ret = truth(compare(run, args, &order) && order <= 0);
    return true;
}

static bool apply_ge(HelperRun *run, const HelperArgs *args, Value *ret, Error *err)
{
    int order = 0;
    (void)err;
    *ret = truth(compare(run, args, &order) && order >= 0);
    return true;
}

static bool apply_and(HelperRun *run, const HelperArgs *args, Value *ret, Error *err)
{
    (void)run;
    (void)err;
    for (size_t i = 0; i < args->count; i++) {
        *ret = args->params[i];
        if (!is_true(ret)) {
            return true;
        }
    }
    return true;
}

static bool apply_or(HelperRun *run, const HelperArgs *args, Value *ret, Error *err)
{
    (void)run;
    (void)err;
    for (size_t i = 0; i < args->count; i++) {
        *ret = args->params[i];
        if (is_true(ret)) {
            return true;
        }
    }
    return true;
}

static bool apply_not(HelperRun *run, const HelperArgs *args, Value *ret, Error *err)
{
    (void)run;
    (void)err;
    *ret = truth(!is_true(&args->params[0]));
    return true;
}

// The first argument that is there and no empty text; the last one if none is.
static bool apply_default(HelperRun *run, const HelperArgs *args, Value *ret, Error *err)
{
    (void)run;
    (void)err;
    for (size_t i = 0; i < args->count; i++) {
        *ret = args->params[i];
        if (!is_nothing(ret) && !(ret->kind == VALUE_TEXT && ret->text.len == 0)) {
            return true;
        }
    }
    return true;
}

static bool apply_lookup(HelperRun *run, const HelperArgs *args, Value *ret, Error *err)
{
    Str name;
    if (is_nothing(&args->params[1])) {
        *ret = (Value){.kind = VALUE_NONE};
        return true;
    }
    if (!text_of(run, &args->params[1], &name, err)) {
        return false;
    }
    Segment segment = segment_of(name);
    *ret = value_member(&args->params[0], &segment, &run->steps);
    return true;
}

// Handlebars writes to its console; here there is none.
static bool apply_log(HelperRun *run, const HelperArgs *args, Value *ret, Error *err)
{
    (void)run;
    (void)args;
    (void)err;
    *ret = (Value){.kind = VALUE_TEXT, .text = STR_EMPTY};
    return true;
}

// ---- text ----

static bool change_case(HelperRun *run, const HelperArgs *args, bool upper, Value *ret, Error *err)
{
    Str text;
    Str locale = run->locale;
    return text_of(run, &args->params[0], &text, err) &&
           named_text(run, args, "locale", &locale, err) &&
           format_case(run->formats, locale, upper, text, run->work, err) &&
           give_text(run, ret, err);
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
    if (!text_of(run, &args->params[0], &text, err) ||
        (args->count > 2 && !text_of(run, &args->params[2], &mark, err))) {
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
    return give_text(run, ret, err);
}

static bool is_unreserved(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

// RFC 3986: every byte but the unreserved ones, so that it is one value of a query or one segment.
static bool apply_url(HelperRun *run, const HelperArgs *args, Value *ret, Error *err)
{
    static const char hex[] = "0123456789ABCDEF";
    Str text;
    if (!text_of(run, &args->params[0], &text, err)) {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (is_unreserved(c)) {
            buf_char(run->work, (char)c);
        } else {
            char triple[3] = {'%', hex[c >> 4], hex[c & 15]};
            buf_append(run->work, triple, 3);
        }
    }
    return give_text(run, ret, err);
}

// ---- numbers ----

// What is not there formats as nothing, as it prints as nothing.
static bool nothing_for_nothing(const HelperArgs *args, Value *ret)
{
    if (!is_nothing(&args->params[0])) {
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
    return second_text(run, args, &format.style, err) &&
           named_text(run, args, "locale", &format.locale, err) &&
           digits_of(run, args, &format.digits, err) &&
           decimal_of(run, &args->params[0], &decimal, err) &&
           format_number(run->formats, &format, decimal, run->work, err) &&
           give_text(run, ret, err);
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
    if (!give_text(run, &text, err)) {
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
    const Value *minor = named(args, "minor");
    run->steps += FORMAT_STEPS;
    if (nothing_for_nothing(args, ret)) {
        return true;
    }
    if (!second_text(run, args, &format.currency, err) ||
        !named_text(run, args, "locale", &format.locale, err) ||
        !digits_of(run, args, &format.digits, err) ||
        !decimal_of(run, &args->params[0], &decimal, err)) {
        return false;
    }
    if (format.currency.len == 0) {
        return error_set(
            err, ERROR_PERMANENT, "the currency is missing: {{currency amount 'EUR'}}");
    }
    if (minor != NULL && is_true(minor) && !minor_amount(run, format.currency, &decimal, err)) {
        return false;
    }
    return format_number(run->formats, &format, decimal, run->work, err) &&
           give_text(run, ret, err);
}

// The text of the number's category: named (one="..." other="..."), or {{plural n "item" "items"}}.
static const Value *plural_choice(const HelperArgs *args, const char *category, double number)
{
    const Value *choice = NULL;
    if (args->count == 3) {
        return &args->params[strcmp(category, "one") == 0 ? 1 : 2];
    }
    // "zero" is said for 0 in any language, as authors expect of it.
    if (!(number < 0) && !(number > 0)) {
        choice = named(args, "zero");
    }
    choice = choice != NULL ? choice : named(args, category);
    return choice != NULL ? choice : named(args, "other");
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
    return give_text(run, ret, err);
}

static bool apply_plural(HelperRun *run, const HelperArgs *args, Value *ret, Error *err)
{
    Str locale = run->locale;
    Str words;
    Str decimal;
    double number = 0;
    char category[16];
    const Value *ordinal = named(args, "ordinal");
    Value written;
    run->steps += 2 * FORMAT_STEPS;
    if (args->count == 2) {
        return error_set(
            err, ERROR_PERMANENT,
            "expected {{plural n 'item' 'items'}} or one='item' other='items'");
    }
    if (!named_text(run, args, "locale", &locale, err) ||
        !decimal_of(run, &args->params[0], &decimal, err) ||
        !real_of(run, &args->params[0], &number) ||
        !format_plural(
            run->formats, locale, ordinal != NULL && is_true(ordinal), number, category, err)) {
        return false;
    }
    const Value *choice = plural_choice(args, category, number);
    if (choice == NULL) {
        return error_set(err, ERROR_PERMANENT, "other= is missing, which this number needs");
    }
    NumberFormat format = {locale, STR_EMPTY, STR_EMPTY, -1};
    if (!text_of(run, choice, &words, err) ||
        !format_number(run->formats, &format, decimal, run->work, err) ||
        !give_text(run, &written, err)) {
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
    if (!may || !real_of(run, value, &number) || !(fabs(number) < 1e14)) {
        return error_set(
            err, ERROR_PERMANENT,
            "expected a time: RFC 3339 ('2026-11-21T18:30:00Z'), a day ('2026-11-21') or "
            "seconds since 1970, got %s",
            kind_name(value));
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
    if (!second_text(run, args, &format.style, err) ||
        !named_text(run, args, "time", &format.time, err) ||
        !named_text(run, args, "zone", &format.zone, err) ||
        !named_text(run, args, "locale", &format.locale, err) ||
        !instant_of(run, &args->params[0], &at_ms, &is_day, err)) {
        return false;
    }
    if (is_day) {
        format.zone = STR("UTC");
    }
    return format_date(run->formats, &format, at_ms, run->work, err) && give_text(run, ret, err);
}

// ---- the table ----

// clang-format off
static const Helper helpers[] = {
    // name     min max named                                        may_miss condition
    {"date",      1, 2, "time zone locale",                           false, false, apply_date},
    {"number",    1, 2, "digits locale",                              false, false, apply_number},
    {"currency",  1, 2, "digits minor locale",                        false, false, apply_currency},
    {"plural",    1, 3, "zero one two few many other ordinal locale", false, false, apply_plural},
    {"eq",        2, 2, "",                                           true,  true,  apply_eq},
    {"ne",        2, 2, "",                                           true,  true,  apply_ne},
    {"lt",        2, 2, "",                                           true,  true,  apply_lt},
    {"gt",        2, 2, "",                                           true,  true,  apply_gt},
    {"lte",       2, 2, "",                                           true,  true,  apply_le},
    {"gte",       2, 2, "",                                           true,  true,  apply_ge},
    {"and",       1, 8, "",                                           true,  true,  apply_and},
    {"or",        1, 8, "",                                           true,  true,  apply_or},
    {"not",       1, 1, "",                                           true,  true,  apply_not},
    {"default",   2, 8, "",                                           true,  false, apply_default},
    {"url",       1, 1, "",                                           false, false, apply_url},
    {"upper",     1, 1, "locale",                                     false, false, apply_upper},
    {"lower",     1, 1, "locale",                                     false, false, apply_lower},
    {"truncate",  2, 3, "",                                           false, false, apply_truncate},
    {"lookup",    2, 2, "",                                           true,  false, apply_lookup},
    {"log",       0, 8, "level",                                      true,  false, apply_log},
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
