// SPDX-License-Identifier: Apache-2.0
#include "common/credential/reference.h"

#define EXPECTED "'file:/PATH', 'env:NAME' or 'exec:/PATH ARGUMENTS'"

static bool check_path(Str path, const char *scheme, Error *err)
{
    if (path.len < 2 || path.ptr[0] != '/') {
        return error_set(
            err, ERROR_PERMANENT, "the path is not absolute; write '%s:/run/secrets/NAME'", scheme);
    }
    Str rest = path;
    Str part;
    while (str_split(&rest, '/', &part)) {
        if (str_eq(part, STR("..")) || str_eq(part, STR("."))) {
            return error_set(err, ERROR_PERMANENT, "the path has a '%.*s'", STR_ARG(part));
        }
    }
    return true;
}

static bool check_variable(Str name, Error *err)
{
    bool good = name.len >= 1 && name.len <= 128 && !ascii_is_digit(name.ptr[0]);
    for (size_t i = 0; good && i < name.len; i++) {
        good = ascii_is_alnum(name.ptr[i]) || name.ptr[i] == '_';
    }
    if (!good) {
        return error_set(
            err, ERROR_PERMANENT, "not the name of a variable; write 'env:SENDGRID_KEY'");
    }
    return !str_starts(name, STR("STENTOR_")) ||
           error_set(
               err, ERROR_PERMANENT,
               "variables that begin with STENTOR_ are the programs' own; give the secret another "
               "name");
}

static bool read_program(Str line, Reference *ret, Error *err)
{
    Str word;
    while (str_split(&line, ' ', &word)) {
        if (word.len == 0) {
            continue;
        }
        if (ret->place.len == 0) {
            ret->place = word;
        } else if (ret->argument_count == REFERENCE_ARGUMENTS_MAX) {
            return error_set(
                err, ERROR_PERMANENT, "more than %d arguments; put them into a script",
                REFERENCE_ARGUMENTS_MAX);
        } else {
            ret->arguments[ret->argument_count++] = word;
        }
    }
    return check_path(ret->place, "exec", err);
}

static Str after(Str text, Str scheme)
{
    return str_slice(text, scheme.len, text.len);
}

bool reference_parse(Str text, Reference *ret, Error *err)
{
    Reference reference = {.place = STR_EMPTY};
    bool ok = false;
    if (text.len == 0) {
        return error_set(err, ERROR_PERMANENT, "required: where the secret is: " EXPECTED);
    }
    if (text.len > REFERENCE_MAX || str_has_control(text)) {
        return error_set(
            err, ERROR_PERMANENT, "not " EXPECTED " of at most %d bytes on one line",
            REFERENCE_MAX);
    }
    if (str_starts(text, STR("file:"))) {
        reference.kind = REFERENCE_FILE;
        reference.place = after(text, STR("file:"));
        ok = check_path(reference.place, "file", err);
    } else if (str_starts(text, STR("env:"))) {
        reference.kind = REFERENCE_ENV;
        reference.place = after(text, STR("env:"));
        ok = check_variable(reference.place, err);
    } else if (str_starts(text, STR("exec:"))) {
        reference.kind = REFERENCE_EXEC;
        ok = read_program(after(text, STR("exec:")), &reference, err);
    } else if (str_starts(text, STR("vault:"))) {
        return error_set(
            err, ERROR_PERMANENT,
            "vault: is not read directly (HINT: 'exec:/PATH/vault kv get -field=FIELD PATH', or "
            "let "
            "its agent write a file and give file:/PATH)");
    } else {
        return error_set(
            err, ERROR_PERMANENT,
            "a secret itself is never taken: put it into a file that the service can read and "
            "give " EXPECTED);
    }
    if (ok) {
        *ret = reference;
    }
    return ok;
}
