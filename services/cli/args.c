// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "services/cli/cli.h"

bool command_flag(const Command *command, Str *rest, Str *ret_name, bool *ret_takes_value)
{
    if (rest->ptr == NULL) {
        *rest = str_from(command->flags);
    }
    Str token;
    while (rest->len > 0 && str_split(rest, ' ', &token)) {
        *ret_takes_value = str_ends(token, STR("="));
        *ret_name = *ret_takes_value ? str_slice(token, 0, token.len - 1) : token;
        if (rest->ptr == NULL) {
            *rest = STR(""); // the end, and not the beginning
        }
        if (ret_name->len > 0) {
            return true;
        }
    }
    return false;
}

// Is `name` in the command's flag list, and does it take a value?
static bool find_flag(const Command *command, Str name, bool *ret_takes_value)
{
    Str rest = {0};
    Str flag;
    while (command_flag(command, &rest, &flag, ret_takes_value)) {
        if (str_eq(flag, name)) {
            return true;
        }
    }
    return false;
}

static bool add_flag(const Command *command, int argc, char **argv, int *at, Args *args, Error *err)
{
    const char *name = argv[*at] + 2;
    const char *equals = strchr(name, '=');
    Str plain = equals != NULL ? str_of(name, (size_t)(equals - name)) : str_from(name);
    bool takes_value = false;
    if (!find_flag(command, plain, &takes_value)) {
        return error_set(
            err, ERROR_CONFIG, "unknown option '--" STR_FMT "' (stentor help %s)", STR_ARG(plain),
            command->name);
    }
    const char *value = NULL;
    if (takes_value) {
        value = equals != NULL ? equals + 1 : *at + 1 < argc ? argv[++*at] : NULL;
        if (value == NULL) {
            return error_set(err, ERROR_CONFIG, "option '--%s' needs a value", name);
        }
    } else if (equals != NULL) {
        return error_set(
            err, ERROR_CONFIG, "option '--" STR_FMT "' takes no value", STR_ARG(plain));
    }
    if (args->flag_count == ARGS_MAX) {
        return error_set(err, ERROR_CONFIG, "more than %d options", ARGS_MAX);
    }
    args->flags[args->flag_count].name = name;
    args->flags[args->flag_count++].value = value;
    return true;
}

static bool check_words(const Command *command, const Args *args, Error *err)
{
    const char *blank = command->usage[0] != '\0' ? " " : "";
    if (args->word_count > command->max_words) {
        return error_set(
            err, ERROR_CONFIG, "unexpected argument '%s' (usage: stentor %s%s%s)",
            args->words[command->max_words], command->name, blank, command->usage);
    }
    return args->word_count >= command->min_words ||
           error_set(
               err, ERROR_CONFIG, "usage: stentor %s%s%s", command->name, blank, command->usage);
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
            return error_set(err, ERROR_CONFIG, "more than %d arguments", ARGS_MAX);
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
            err, ERROR_CONFIG, "--%s is '%s': expected a whole number from %lld to %lld", name,
            text, (long long)min, (long long)max);
    }
    *ret = value;
    return true;
}
