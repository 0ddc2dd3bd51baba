// SPDX-License-Identifier: Apache-2.0
#include "common/template/helpers/helper_args.h"

#include <stdlib.h>
#include <string.h>

enum { DIGITS_MAX = 20 };

const Value *helper_named(const HelperArgs *args, const char *name)
{
    for (size_t i = 0; i < args->named_count; i++) {
        if (str_eq(args->names[i], str_from(name))) {
            return &args->named[i];
        }
    }
    return NULL;
}

bool helper_is_nothing(const Value *value)
{
    return value->kind == VALUE_NONE || value->kind == VALUE_NULL;
}

bool helper_is_true(const Value *value)
{
    return !value_is_empty(value) && !value_is_zero(value);
}

Value helper_truth(bool yes)
{
    return (Value){.kind = VALUE_BOOL, .truth = yes};
}

bool helper_give_text(HelperRun *run, Value *ret, Error *err)
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

bool helper_text_of(HelperRun *run, const Value *value, Str *ret, Error *err)
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
    if (!printed || !helper_give_text(run, &text, err)) {
        return false;
    }
    buf_clear(run->work);
    *ret = text.text;
    return true;
}

bool helper_named_text(
    HelperRun *run, const HelperArgs *args, const char *name, Str *ret, Error *err)
{
    const Value *value = helper_named(args, name);
    return value == NULL || helper_is_nothing(value) || helper_text_of(run, value, ret, err);
}

bool helper_second_text(HelperRun *run, const HelperArgs *args, Str *ret, Error *err)
{
    return args->count < 2 || helper_is_nothing(&args->params[1]) ||
           helper_text_of(run, &args->params[1], ret, err);
}

const char *helper_kind_name(const Value *value)
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

bool helper_decimal_of(HelperRun *run, const Value *value, Str *ret, Error *err)
{
    const char *why = "a number";
    bool may = value->kind == VALUE_INT || value->kind == VALUE_REAL || value->kind == VALUE_TEXT;
    if (may && !helper_text_of(run, value, ret, err)) {
        return false;
    }
    if (may) {
        *ret = str_trim(*ret);
    }
    if (!may || (value->kind == VALUE_TEXT && !format_is_decimal(*ret, &why))) {
        // What it is instead may be personal data, so only its kind is named.
        return error_set(err, ERROR_PERMANENT, "expected %s, got %s", why, helper_kind_name(value));
    }
    return true;
}

bool helper_real_of(HelperRun *run, const Value *value, double *ret)
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

bool helper_digits_of(HelperRun *run, const HelperArgs *args, int *ret, Error *err)
{
    const Value *value = helper_named(args, "digits");
    (void)run;
    *ret = -1;
    if (value == NULL || helper_is_nothing(value)) {
        return true;
    }
    if (value->kind != VALUE_INT || value->number < 0 || value->number > DIGITS_MAX) {
        return error_set(
            err, ERROR_PERMANENT, "digits= is a whole number from 0 to %d", DIGITS_MAX);
    }
    *ret = (int)value->number;
    return true;
}
