// SPDX-License-Identifier: Apache-2.0
#include "common/service/option_value.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/arena.h"

static bool is_wrong(const Option *row, Str value, const char *expected, Error *err)
{
    Str shown = row->secret ? STR("***") : str_slice(value, 0, 80);
    return error_set(
        err, ERROR_CONFIG, "%s is '" STR_FMT "': expected %s", row->name, STR_ARG(shown), expected);
}

static bool store_text(const Option *row, char *field, Str value, Error *err)
{
    if (value.len > OPTION_TEXT_MAX) {
        return error_set(
            err, ERROR_CONFIG, "%s has %zu bytes: expected at most %d", row->name, value.len,
            OPTION_TEXT_MAX);
    }
    if (str_has_control(value) || !str_is_utf8(value)) {
        return error_set(
            err, ERROR_CONFIG, "%s: expected UTF-8 text without control characters or line breaks",
            row->name);
    }
    char *copy = xmalloc(value.len + 1);
    str_to_c(value, copy, value.len + 1);
    memcpy(field, &copy, sizeof copy);
    return true;
}

static bool store_int(const Option *row, char *field, Str value, Error *err)
{
    int64_t number = 0;
    if (!str_to_i64(value, &number) || number < row->min || number > row->max) {
        char expected[96];
        snprintf(
            expected, sizeof expected, "a whole number from %" PRId64 " to %" PRId64, row->min,
            row->max);
        return is_wrong(row, value, expected, err);
    }
    memcpy(field, &number, sizeof number);
    return true;
}

bool option_parse_bool(Str value, bool *ret_flag)
{
    static const char *const words[] = {"false", "true", "no", "yes", "off", "on", "0", "1"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (str_eq_nocase(value, str_from(words[i]))) {
            *ret_flag = i % 2 == 1;
            return true;
        }
    }
    return false;
}

static bool store_bool(const Option *row, char *field, Str value, Error *err)
{
    bool flag = false;
    if (!option_parse_bool(value, &flag)) {
        return is_wrong(row, value, "true or false", err);
    }
    memcpy(field, &flag, sizeof flag);
    return true;
}

bool option_store(const Option *row, void *options, Str value, Error *err)
{
    char *field = (char *)options + row->offset;
    switch (row->type) {
    case OPTION_TEXT:
        return store_text(row, field, value, err);
    case OPTION_INT:
        return store_int(row, field, value, err);
    case OPTION_BOOL:
        break;
    }
    return store_bool(row, field, value, err);
}

bool option_is_name(Str text)
{
    return str_starts(text, STR("STENTOR_")) || str_starts(text, STR("OTEL_"));
}

const char *option_flag(const char *name)
{
    static const char OWN[] = "STENTOR_";
    return str_starts(str_from(name), STR("STENTOR_")) ? name + sizeof OWN - 1 : name;
}
