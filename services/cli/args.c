// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/span.h"
#include "services/cli/cli.h"

bool command_flag(const Command *command, Str *rest, CommandFlag *ret)
{
    if (rest->ptr == NULL) {
        *rest = str_from(command->flags);
    }
    Str token;
    while (rest->len > 0 && str_split(rest, ' ', &token)) {
        bool required = str_ends(token, STR("!"));
        token = str_slice(token, 0, token.len - (required ? 1 : 0));
        bool takes_value = str_ends(token, STR("="));
        *ret = (CommandFlag){
            .name = str_slice(token, 0, token.len - (takes_value ? 1 : 0)),
            .takes_value = takes_value,
            .required = required};
        if (rest->ptr == NULL) {
            *rest = STR(""); // the end, and not the beginning
        }
        if (ret->name.len > 0) {
            return true;
        }
    }
    return false;
}

Str command_value(const Command *command, Str flag)
{
    for (const char *at = command->help; (at = strstr(at, "--")) != NULL; at += 2) {
        const char *value = at + 3 + flag.len;
        if (strncmp(at + 2, flag.ptr, flag.len) == 0 && value[-1] == ' ' && *value != ' ') {
            return str_of(value, strcspn(value, " \n,;"));
        }
    }
    return STR("VALUE");
}

void command_usage(const Command *command, Buf *out)
{
    Str rest = {0};
    CommandFlag flag;
    bool optional = false, json = false;
    buf_cstr(out, command->name);
    if (command->usage[0] != '\0') {
        buf_printf(out, " %s", command->usage);
    }
    while (command_flag(command, &rest, &flag)) {
        if (flag.required) {
            Str value = command_value(command, flag.name);
            buf_printf(out, " --" STR_FMT " " STR_FMT, STR_ARG(flag.name), STR_ARG(value));
        } else if (str_eq(flag.name, STR("json"))) {
            json = true;
        } else {
            optional = true;
        }
    }
    buf_cstr(out, optional ? " [OPTION...]" : "");
    buf_cstr(out, json ? " [--json]" : "");
}

// Fills *err with the text and the command's usage behind it.
static bool fail_usage(const Command *command, const char *what, Error *err)
{
    Buf usage;
    buf_init(&usage, 1024);
    command_usage(command, &usage);
    error_set(err, ERROR_USAGE, "%s (usage: stentor %s)", what, buf_c(&usage));
    buf_done(&usage);
    return false;
}

static bool find_flag(const Command *command, Str name, CommandFlag *ret)
{
    Str rest = {0};
    while (command_flag(command, &rest, ret)) {
        if (str_eq(ret->name, name)) {
            return true;
        }
    }
    return false;
}

static bool fail_unknown(const Command *command, Str name, Error *err)
{
    Str rest = {0}, nearest = STR_EMPTY;
    CommandFlag flag;
    size_t least = name.len / 3 + 1;
    while (command_flag(command, &rest, &flag)) {
        size_t distance = str_distance(name, flag.name);
        if (distance < least) {
            least = distance;
            nearest = flag.name;
        }
    }
    return error_set(
        err, ERROR_USAGE, "unknown option '--" STR_FMT "'%s" STR_FMT "%s (stentor help %s)",
        STR_ARG(name), nearest.len > 0 ? "; did you mean '--" : "", STR_ARG(nearest),
        nearest.len > 0 ? "'?" : "", command->name);
}

static bool add_flag(const Command *command, int argc, char **argv, int *at, Args *args, Error *err)
{
    const char *name = argv[*at] + 2;
    const char *equals = strchr(name, '=');
    Str plain = equals != NULL ? str_of(name, (size_t)(equals - name)) : str_from(name);
    CommandFlag flag;
    if (!find_flag(command, plain, &flag)) {
        return fail_unknown(command, plain, err);
    }
    const char *value = NULL;
    if (flag.takes_value) {
        value = equals != NULL ? equals + 1 : *at + 1 < argc ? argv[++*at] : NULL;
        if (value == NULL) {
            return error_set(err, ERROR_USAGE, "option '--%s' needs a value", name);
        }
    } else if (equals != NULL) {
        return error_set(err, ERROR_USAGE, "option '--" STR_FMT "' takes no value", STR_ARG(plain));
    }
    if (args->flag_count == ARGS_MAX) {
        return error_set(err, ERROR_USAGE, "more than %d options", ARGS_MAX);
    }
    args->flags[args->flag_count].name = name;
    args->flags[args->flag_count++].value = value;
    return true;
}

static bool check_words(const Command *command, const Args *args, Error *err)
{
    char text[160];
    if (args->word_count > command->max_words) {
        snprintf(
            text, sizeof text, "unexpected argument '%.100s'", args->words[command->max_words]);
        return fail_usage(command, text, err);
    }
    if (args->word_count < command->min_words) {
        return fail_usage(command, "an argument is missing", err);
    }
    Str rest = {0};
    CommandFlag flag;
    while (command_flag(command, &rest, &flag)) {
        char name[64];
        if (flag.required && str_to_c(flag.name, name, sizeof name) && !args_has(args, name)) {
            Str value = command_value(command, flag.name);
            snprintf(text, sizeof text, "--%s " STR_FMT " is required", name, STR_ARG(value));
            return fail_usage(command, text, err);
        }
    }
    return true;
}

bool args_parse(const Command *command, int argc, char **argv, Args *ret, Error *err)
{
    *ret = (Args){0};
    bool only_words = false;
    for (int i = 0; i < argc; i++) {
        if (!only_words && strcmp(argv[i], "--") == 0) {
            only_words = true;
        } else if (!only_words && (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)) {
            ret->help = true;
        } else if (!only_words && strncmp(argv[i], "--", 2) == 0) {
            if (!add_flag(command, argc, argv, &i, ret, err)) {
                return false;
            }
        } else if (ret->word_count == ARGS_MAX) {
            return error_set(err, ERROR_USAGE, "more than %d arguments", ARGS_MAX);
        } else {
            ret->words[ret->word_count++] = argv[i];
        }
    }
    return ret->help || check_words(command, ret, err);
}

const char *args_word(const Args *args, int index)
{
    return index < args->word_count ? args->words[index] : NULL;
}

const char *args_each(const Args *args, const char *name, int *cursor)
{
    size_t len = strlen(name);
    while (*cursor < args->flag_count) {
        int at = (*cursor)++;
        // A flag was stored as it was written, so "name=value" must match up to the '='.
        const char *written = args->flags[at].name;
        if (strncmp(written, name, len) == 0 && (written[len] == '\0' || written[len] == '=')) {
            return args->flags[at].value != NULL ? args->flags[at].value : "";
        }
    }
    return NULL;
}

const char *args_flag(const Args *args, const char *name)
{
    const char *last = NULL;
    const char *value = NULL;
    for (int i = 0; (value = args_each(args, name, &i)) != NULL;) {
        last = value;
    }
    return last;
}

bool args_has(const Args *args, const char *name)
{
    return args_flag(args, name) != NULL;
}

bool args_int(
    const Args *args, const char *name, int64_t def, int64_t min, int64_t max, int64_t *ret,
    Error *err)
{
    const char *text = args_flag(args, name);
    if (text == NULL) {
        *ret = def;
        return true;
    }
    int64_t value = 0;
    if (!str_to_i64(str_from(text), &value) || value < min || value > max) {
        return error_set(
            err, ERROR_USAGE, "--%s is '%s': expected a whole number from %lld to %lld", name, text,
            (long long)min, (long long)max);
    }
    *ret = value;
    return true;
}

bool args_time(
    const Args *args, const char *name, TimeFrom from, int64_t now_us, int64_t *ret, Error *err)
{
    const char *text = args_flag(args, name);
    int64_t span_us = 0;
    if (text == NULL) {
        return true;
    }
    if (span_parse(str_from(text), &span_us)) {
        *ret = from == TIME_BEFORE_NOW ? now_us - span_us : now_us + span_us;
        return true;
    }
    return clock_parse(str_from(text), ret) ||
           error_set(
               err, ERROR_USAGE,
               "--%s is '%s': expected a time such as 2026-11-20T18:00:00Z (RFC 3339), or how long "
               "%s (90s, 30m, 2h, 7d)",
               name, text, from == TIME_BEFORE_NOW ? "ago" : "from now");
}
