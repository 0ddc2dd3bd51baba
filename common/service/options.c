// SPDX-License-Identifier: Apache-2.0
// Reads the sources from the strongest to the weakest; the first that knows an option has the word.
#include "common/service/options.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"
#include "common/base/file.h"
#include "common/service/known_names.h"
#include "common/service/option_value.h"
#include "common/service/options_file.h"

enum { ROWS_MAX = 128, NAME_MAX_BYTES = KNOWN_NAME_MAX };

extern char **environ; // POSIX has no header for it

typedef struct Loader {
    const Option *table;
    size_t count;
    char *options;
    OptionSource set_by[ROWS_MAX];
    const char *config; // --config; NULL: none
} Loader;

// ---- one value ----

static bool store(Loader *l, const Option *row, Str value, OptionSource source, Error *err)
{
    OptionSource *set_by = &l->set_by[row - l->table];
    if (*set_by > source) {
        return true;
    }
    if (*set_by == source) {
        return error_set(
            err, ERROR_CONFIG, "%s is given twice%s", row->name,
            row->secret ? ", perhaps once as a value and once as a file" : "");
    }
    if (value.len == 0 && row->type == OPTION_TEXT && row->def == NULL) {
        return true; // required: an empty text is as good as none
    }
    bool ok = option_store(row, l->options, value, err);
    *set_by = ok ? source : *set_by;
    return ok;
}

static bool store_from_file(
    Loader *l, const Option *row, const char *path, OptionSource source, Error *err)
{
    Buf secret;
    buf_init(&secret, OPTION_TEXT_MAX + 2);
    bool ok = file_append(path, &secret, err);
    if (!ok) {
        error_wrap(err, "%s_FILE", row->name);
    }
    Str value = buf_view(&secret); // one line break at its end belongs to the file
    value = str_ends(value, STR("\n")) ? str_slice(value, 0, value.len - 1) : value;
    value = str_ends(value, STR("\r")) ? str_slice(value, 0, value.len - 1) : value;
    ok = ok && store(l, row, value, source, err);
    buf_done(&secret);
    return ok;
}

// ---- names ----

// The row of NAME; or, with *ret_from_file, the secret whose value stands in a file (NAME_FILE).
static const Option *find_row(const Loader *l, Str name, bool *ret_from_file)
{
    *ret_from_file = false;
    for (size_t i = 0; i < l->count; i++) {
        if (str_eq(name, str_from(l->table[i].name))) {
            return &l->table[i];
        }
    }
    if (!str_ends(name, STR("_FILE"))) {
        return NULL;
    }
    Str base = str_slice(name, 0, name.len - STR("_FILE").len);
    for (size_t i = 0; i < l->count; i++) {
        if (l->table[i].secret && str_eq(base, str_from(l->table[i].name))) {
            *ret_from_file = true;
            return &l->table[i];
        }
    }
    return NULL;
}

static bool store_named(
    Loader *l, const Option *row, bool from_file, Str value, OptionSource source, Error *err)
{
    if (!from_file) {
        return store(l, row, value, source, err);
    }
    // A file that another source goes over is not opened: systemd's services have copies of their
    // own (%d/password) and cannot read the path that the settings of `stentor init` name.
    if (l->set_by[row - l->table] > source) {
        return true;
    }
    char path[OPTION_TEXT_MAX];
    if (!str_to_c(value, path, sizeof path)) {
        return error_set(err, ERROR_CONFIG, "%s_FILE: the path is too long", row->name);
    }
    return store_from_file(l, row, path, source, err);
}

// "nats-url" -> "STENTOR_NATS_URL", "otel-service-name" -> "OTEL_SERVICE_NAME"; false when it is no
// flag's spelling.
static bool name_of_flag(Str flag, Buf *out)
{
    buf_cstr(out, str_starts(flag, STR("otel-")) ? "" : "STENTOR_");
    for (size_t i = 0; i < flag.len; i++) {
        char c = flag.ptr[i];
        bool letter = c >= 'a' && c <= 'z';
        if (!letter && c != '-' && !(c >= '0' && c <= '9')) {
            return false;
        }
        buf_char(out, letter ? (char)(c - 'a' + 'A') : c == '-' ? '_' : c);
    }
    return !out->full;
}

static const Option *find_flag(const Loader *l, Str flag, bool *ret_from_file)
{
    Buf name;
    buf_init(&name, NAME_MAX_BYTES);
    const Option *row =
        name_of_flag(flag, &name) ? find_row(l, buf_view(&name), ret_from_file) : NULL;
    buf_done(&name);
    return row;
}

// ---- command line ----

typedef struct Arguments {
    int argc;
    char **argv;
    int at;
    Str flag;
    Str value; // of "--flag=value"
    bool has_value;
} Arguments;

static bool take_value(Arguments *a, Error *err)
{
    if (a->has_value) {
        return true;
    }
    if (a->at + 1 >= a->argc) {
        return error_set(err, ERROR_CONFIG, "--" STR_FMT " needs a value", STR_ARG(a->flag));
    }
    a->value = str_from(a->argv[++a->at]);
    a->has_value = true;
    return true;
}

static void take_switch(Arguments *a)
{
    bool ignored;
    Str next = a->at + 1 < a->argc ? str_from(a->argv[a->at + 1]) : STR_EMPTY;
    if (!a->has_value && option_parse_bool(next, &ignored)) {
        a->at++;
        a->value = next;
    } else if (!a->has_value) {
        a->value = STR("true");
    }
    a->has_value = true;
}

static bool take_config(Loader *l, Arguments *a, Error *err)
{
    if (l->config != NULL) {
        return error_set(err, ERROR_CONFIG, "--config is given twice");
    }
    if (!take_value(a, err)) {
        return false;
    }
    l->config = a->value.ptr; // the tail of an argument, so it ends with a NUL
    return true;
}

static bool read_argument(Loader *l, Arguments *a, Error *err)
{
    Str argument = str_from(a->argv[a->at]);
    ptrdiff_t equals = str_find(argument, '=');
    a->has_value = equals >= 0;
    a->value = a->has_value ? str_slice(argument, (size_t)equals + 1, argument.len) : STR_EMPTY;
    Str word = a->has_value ? str_slice(argument, 0, (size_t)equals) : argument;
    a->flag = str_slice(word, 2, word.len);
    if (str_eq(word, STR("--config"))) {
        return take_config(l, a, err);
    }
    bool from_file = false;
    const Option *row = str_starts(word, STR("--")) ? find_flag(l, a->flag, &from_file) : NULL;
    if (row == NULL) {
        return error_set(
            err, ERROR_CONFIG, "unknown option '" STR_FMT "' (HINT: --help lists them)",
            STR_ARG(str_slice(word, 0, 80)));
    }
    if (row->type == OPTION_BOOL) {
        take_switch(a);
    } else if (!take_value(a, err)) {
        return false;
    }
    return store_named(l, row, from_file, a->value, OPTION_FROM_ARGUMENT, err);
}

static bool read_arguments(Loader *l, int argc, char **argv, int *ret_rest, Error *err)
{
    Arguments a = {.argc = argc, .argv = argv, .at = 1};
    for (; a.at < argc; a.at++) {
        Str argument = str_from(argv[a.at]);
        if (str_eq(argument, STR("--"))) {
            a.at++;
            break;
        }
        if (!str_starts(argument, STR("-")) || argument.len == 1) {
            break;
        }
        if (!read_argument(l, &a, err)) {
            return false;
        }
    }
    *ret_rest = a.at < argc ? a.at : argc;
    return true;
}

int options_rest(const Option *table, size_t count, int argc, char **argv)
{
    Loader l = {.table = table, .count = count};
    Arguments a = {.argc = argc, .argv = argv, .at = 1};
    for (; a.at < argc && str_starts(str_from(argv[a.at]), STR("--")); a.at++) {
        Str flag = str_from(argv[a.at] + 2);
        bool from_file = false;
        const Option *row = find_flag(&l, flag, &from_file);
        a.has_value = false;
        if (row != NULL && row->type == OPTION_BOOL) {
            take_switch(&a);
        } else if (row != NULL || str_eq(flag, STR("config"))) {
            a.at++;
        } else if (str_find(flag, '=') < 0) {
            break;
        }
    }
    return a.at < argc ? a.at : argc;
}

// A name that is none of ours: another program's is passed over, what no program knows is refused.
static bool pass_over(Str name, Error *err)
{
    if (known_name(name)) {
        return true;
    }
    const char *nearest = known_name_nearest(name);
    return error_set(
        err, ERROR_CONFIG, "no program of Stentor knows '" STR_FMT "' (HINT: %s%s%s)",
        STR_ARG(str_slice(name, 0, 80)), nearest == NULL ? "remove it" : "is ",
        nearest == NULL ? "" : nearest, nearest == NULL ? "" : " meant?");
}

// ---- the environment ----

// Is it a variable that Kubernetes sets for a service of the namespace? They come together, so a
// mistyped STENTOR_INGST_PORT alone is none of them.
static bool is_of_kubernetes(Str name)
{
    size_t service = kubernetes_service(name);
    char host[NAME_MAX_BYTES + 16];
    if (service == 0 || service >= NAME_MAX_BYTES) {
        return false;
    }
    snprintf(host, sizeof host, STR_FMT "_SERVICE_HOST", STR_ARG(str_slice(name, 0, service)));
    return getenv(host) != NULL;
}

// The variable's value; NULL: not set. The port of a service that is called as an option of ours
// begins (STENTOR_INGEST_PORT=tcp://10.0.0.1:8080) is Kubernetes' and no value of the option.
static const char *value_of(const char *name)
{
    const char *value = getenv(name);
    bool foreign =
        value != NULL && strstr(value, "://") != NULL && is_of_kubernetes(str_from(name));
    return foreign ? NULL : value;
}

static bool refuse_unknown(const Loader *l, Error *err)
{
    for (char **entry = environ; *entry != NULL; entry++) {
        Str rest = str_from(*entry), name;
        bool from_file;
        if (str_split(&rest, '=', &name) && str_starts(name, STR("STENTOR_")) &&
            find_row(l, name, &from_file) == NULL && !is_of_kubernetes(name) &&
            !pass_over(name, err)) {
            return error_wrap(err, "environment");
        }
    }
    return true;
}

static bool read_environment(Loader *l, Error *err)
{
    for (size_t i = 0; i < l->count; i++) {
        const Option *row = &l->table[i];
        const char *value = value_of(row->name);
        if (value != NULL && !store(l, row, str_from(value), OPTION_FROM_ENVIRONMENT, err)) {
            return false;
        }
        char file_name[NAME_MAX_BYTES];
        snprintf(file_name, sizeof file_name, "%s_FILE", row->name);
        const char *path = row->secret ? getenv(file_name) : NULL;
        if (path != NULL && path[0] != '\0' &&
            !store_from_file(l, row, path, OPTION_FROM_ENVIRONMENT, err)) {
            return false;
        }
    }
    return refuse_unknown(l, err);
}

// ---- the file ----

static bool take_line(Loader *l, Str name, Str value, Error *err)
{
    bool from_file = false;
    const Option *row = find_row(l, name, &from_file);
    if (row != NULL) {
        return store_named(l, row, from_file, value, OPTION_FROM_FILE, err);
    }
    if (option_is_name(name)) {
        return pass_over(name, err);
    }
    return error_set(
        err, ERROR_CONFIG, "'" STR_FMT "' is not an option: names begin with STENTOR_ or OTEL_",
        STR_ARG(str_slice(name, 0, 80)));
}

static bool read_lines(Loader *l, Str text, Error *err)
{
    OptionsFile file;
    options_file_init(&file, text);
    Str name, value;
    bool ok = true;
    while (ok && options_file_next(&file, &name, &value, err)) {
        ok = take_line(l, name, value, err);
        if (!ok) {
            error_wrap(err, "line %d", file.line);
        }
    }
    options_file_done(&file);
    return ok && err->kind == ERROR_NONE;
}

static bool read_config(Loader *l, Error *err)
{
    if (l->config == NULL) {
        return true;
    }
    Buf text;
    buf_init(&text, OPTION_FILE_MAX);
    bool ok = file_append(l->config, &text, err);
    if (ok && !read_lines(l, buf_view(&text), err)) {
        ok = error_wrap(err, "%s", l->config);
    }
    buf_done(&text);
    return ok;
}

static bool read_defaults(Loader *l, Error *err)
{
    for (size_t i = 0; i < l->count; i++) {
        const Option *row = &l->table[i];
        if (l->set_by[i] != OPTION_FROM_NONE) {
            continue;
        }
        if (row->def == NULL) {
            return error_set(
                err, ERROR_CONFIG,
                "%s is not set: %s (HINT: --config FILE of 'stentor init files', or the "
                "environment)",
                row->name, row->help);
        }
        if (!store(l, row, str_from(row->def), OPTION_FROM_DEFAULT, err)) {
            return error_wrap(err, "default");
        }
    }
    return true;
}

// ---- all ----

bool options_load_args(
    const Option *table, size_t count, void *options, int argc, char **argv, int *ret_rest,
    OptionSource *ret_sources, Error *err)
{
    assert(count <= ROWS_MAX);
    Loader l = {.table = table, .count = count, .options = options};
    for (size_t i = 0; i < count; i++) {
        assert(option_is_name(str_from(table[i].name)));
        if (table[i].type == OPTION_TEXT) {
            const char *none = NULL;
            memcpy(l.options + table[i].offset, &none, sizeof none);
        }
    }
    Error own = {0};
    int rest = argc;
    if (read_arguments(&l, argc, argv, &rest, &own) && read_environment(&l, &own) &&
        read_config(&l, &own) && read_defaults(&l, &own)) {
        *ret_rest = rest;
        if (ret_sources != NULL) {
            memcpy(ret_sources, l.set_by, count * sizeof *ret_sources);
        }
        return true;
    }
    options_free(table, count, options);
    return error_set(err, own.kind, "%s", own.text);
}

bool options_load(
    const Option *table, size_t count, void *options, int argc, char **argv, Error *err)
{
    int rest = argc;
    if (!options_load_args(table, count, options, argc, argv, &rest, NULL, err)) {
        return false;
    }
    if (rest == argc) {
        return true;
    }
    options_free(table, count, options);
    return error_set(
        err, ERROR_CONFIG, "unexpected argument '%.80s' (HINT: see --help)", argv[rest]);
}

void options_free(const Option *table, size_t count, void *options)
{
    for (size_t i = 0; i < count; i++) {
        if (table[i].type == OPTION_TEXT) {
            char *field = (char *)options + table[i].offset;
            char *text = NULL;
            memcpy(&text, field, sizeof text);
            free(text);
            text = NULL;
            memcpy(field, &text, sizeof text);
        }
    }
}
