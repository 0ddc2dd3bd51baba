// SPDX-License-Identifier: Apache-2.0
#include "services/cli/cli.h"

#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/id.h"
#include "services/cli/user_config.h"

enum { MESSAGE_MAX = 4096, OBJECT_BYTES_MAX = 1024 * 1024 };

// Each run of blanks and line breaks as one blank: libpq's texts have several lines.
static void join_lines(char *text)
{
    char *out = text;
    for (char *c = text; *c != '\0'; c++) {
        bool space = strchr(" \t\r\n", *c) != NULL;
        if (!space || (out > text && out[-1] != ' ')) {
            *out++ = space ? ' ' : *c;
        }
    }
    out -= out > text && out[-1] == ' ' ? 1 : 0;
    *out = '\0';
}

static void print_json(const char *key, const char *text, int status, const char *problem)
{
    Str valid = str_from(text);
    json_t *line = json_pack("{s:s}", key, str_is_utf8(valid) ? text : "(not UTF-8)");
    if (status > 0) {
        (void)json_object_set_new(line, "exit_status", json_integer(status));
    }
    if (problem != NULL) {
        (void)json_object_set_new(line, "problem", json_loads(problem, 0, NULL));
    }
    (void)json_dumpf(line, stderr, JSON_COMPACT);
    json_decref(line);
}

// status 0: a remark.
static void say(const Cli *cli, int status, const char *format, va_list args)
{
    char text[MESSAGE_MAX];
    (void)vsnprintf(text, sizeof text, format, args);
    join_lines(text);
    fflush(stdout); // in one log file the reason comes after what was done
    if (cli->json) {
        print_json(status > 0 ? "error" : "note", text, status, status > 0 ? cli->problem : NULL);
    } else {
        fprintf(stderr, "stentor: %s", text);
    }
    fputc('\n', stderr);
}

int cli_fail_as(const Cli *cli, int status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(cli, status, format, args);
    va_end(args);
    return status;
}

void cli_note(const Cli *cli, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(cli, 0, format, args);
    va_end(args);
}

int cli_fail(const Cli *cli, const Error *err)
{
    int status = err->kind == ERROR_USAGE ? EXIT_USAGE : EXIT_FAILED;
    return cli_fail_as(cli, status, "%s", err->text);
}

void cli_note_empty(const Cli *cli, const char *what)
{
    if (!cli->json) {
        cli_note(cli, "no %s", what);
    }
}

bool cli_need(const char *value, const char *option, Error *err)
{
    if (value == NULL || value[0] == '\0') {
        bool key = strcmp(option, "STENTOR_API_KEY") == 0;
        return error_set(
            err, ERROR_USAGE,
            "%s is not set (HINT: %sin the environment, in " USER_CONFIG " or in --config FILE%s)",
            option, key ? "stentor login URL; or " : "",
            key ? "" : "; deploy/local/up writes etc/cli.conf in its data folder");
    }
    return true;
}

// Its row in the table.
static size_t setting_at(const Cli *cli, const char *name)
{
    size_t i = 0;
    while (strcmp(cli->table->settings[i].name, name) != 0) {
        i++;
    }
    return i;
}

// Where the value of a setting stands, as an operator would look for it.
static const char *origin_of(const Cli *cli, const char *name)
{
    switch (cli->sources[setting_at(cli, name)]) {
    case OPTION_FROM_FILE:
        return cli->config;
    case OPTION_FROM_ENVIRONMENT:
        return "the environment";
    case OPTION_FROM_ARGUMENT:
        return "the command line";
    case OPTION_FROM_NONE:
    case OPTION_FROM_DEFAULT:
        break;
    }
    return "its default";
}

static bool is_same_address(const char *a, const char *b)
{
    size_t a_len = strlen(a), b_len = strlen(b);
    a_len -= a_len > 0 && a[a_len - 1] == '/' ? 1 : 0;
    b_len -= b_len > 0 && b[b_len - 1] == '/' ? 1 : 0;
    return str_eq(str_of(a, a_len), str_of(b, b_len));
}

bool cli_key_fits(const Cli *cli, Error *err)
{
    size_t url = setting_at(cli, "STENTOR_API_URL");
    const char *own = NULL;
    if (cli->sources[setting_at(cli, "STENTOR_API_KEY")] != OPTION_FROM_FILE ||
        cli->sources[url] <= OPTION_FROM_FILE) {
        return true;
    }
    if (!user_config_value(cli->config, "STENTOR_API_URL", cli->arena, &own, err)) {
        return false;
    }
    own = own != NULL ? own : cli->table->settings[url].def;
    return is_same_address(own, cli->settings.api_url) ||
           error_set(
               err, ERROR_USAGE,
               "the API key of '%s' goes to %s alone, not to %s (HINT: stentor login URL, or "
               "STENTOR_API_KEY of that address)",
               cli->config, own, cli->settings.api_url);
}

bool cli_no_answer(const Cli *cli, const char *reason, Error *err)
{
    return error_set(
        err, ERROR_TRANSIENT,
        "no answer from %s (STENTOR_API_URL, from %s): %s (HINT: stentor login URL)",
        cli->settings.api_url, origin_of(cli, "STENTOR_API_URL"), reason);
}

const char *cli_home(Cli *cli)
{
    if (cli->settings.home[0] != '\0') {
        return cli->settings.home;
    }
    char own[4096];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    own[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(own, '/');
    if (slash != NULL) {
        *slash = '\0';
        const char *home = arena_printf(cli->arena, "%s/" STENTOR_DATA_FROM_BIN, own);
        if (access(arena_printf(cli->arena, "%s/migrations", home), R_OK) == 0) {
            return home;
        }
    }
    return ".";
}

bool cli_read_file(Cli *cli, const char *path, size_t max, Str *ret, Error *err)
{
    if (file_read(path, max, cli->arena, ret, err)) {
        return true;
    }
    err->kind = ERROR_USAGE; // the caller named it
    return false;
}

bool cli_load_object(Cli *cli, json_t **ret, Error *err)
{
    const char *path = args_flag(&cli->args, "file");
    json_error_t where;
    Str text = STR_EMPTY;
    if (path == NULL) {
        *ret = json_object();
        return true;
    }
    if (!cli_read_file(cli, path, OBJECT_BYTES_MAX, &text, err)) {
        return error_wrap(err, "--file");
    }
    json_t *object = json_loadb(text.ptr, text.len, JSON_REJECT_DUPLICATES, &where);
    if (!json_is_object(object)) {
        json_decref(object);
        return error_set(
            err, ERROR_USAGE, "--file '%s' is not a JSON object: line %d: %s", path, where.line,
            where.text);
    }
    *ret = object;
    return true;
}

bool cli_tenant_or_all(const Cli *cli, const char *what, const char **ret, Error *err)
{
    const char *tenant = args_flag(&cli->args, "tenant");
    if (args_has(&cli->args, "all-tenants")) {
        *ret = NULL;
        return tenant == NULL ||
               error_set(err, ERROR_USAGE, "--tenant and --all-tenants exclude each other");
    }
    *ret = tenant != NULL ? tenant : cli->settings.tenant;
    if (*ret == NULL || (*ret)[0] == '\0') {
        return error_set(
            err, ERROR_USAGE,
            "--tenant TENANT, STENTOR_TENANT or --all-tenants is required: whose %s", what);
    }
    return id_is_tenant(str_from(*ret)) ||
           error_set(err, ERROR_USAGE, "'%s' is not a tenant's id", *ret);
}

bool cli_time_from_now(Cli *cli, const char *name, const char **ret, Error *err)
{
    char text[CLOCK_RFC3339_SIZE];
    int64_t at_us = 0;
    *ret = NULL;
    if (!args_time(&cli->args, name, TIME_FROM_NOW, clock_now_us(), &at_us, err)) {
        return false;
    }
    if (args_has(&cli->args, name)) {
        clock_format(at_us, text);
        *ret = arena_cstr(cli->arena, str_from(text));
    }
    return true;
}

void print_pairs(const Cli *cli, const char *const *pairs)
{
    Buf out;
    buf_init(&out, 1024 * 1024);
    for (int i = 0; pairs[i] != NULL; i += 2) {
        if (cli->json) {
            buf_cstr(&out, i == 0 ? "{" : ",");
            buf_json(&out, str_from(pairs[i]));
            buf_char(&out, ':');
            buf_json(&out, str_from(pairs[i + 1]));
        } else {
            buf_printf(&out, "%-14s %s\n", pairs[i], pairs[i + 1]);
        }
    }
    if (cli->json) {
        buf_cstr(&out, "}\n");
    }
    fputs(buf_c(&out), stdout);
    buf_done(&out);
}

void cli_step(const Cli *cli, const char *what, const char *result)
{
    if (!cli->json) {
        printf("%-40s %s\n", what, result);
        fflush(stdout); // the log of a run that is killed says how far it came
        return;
    }
    Buf line;
    buf_init(&line, 8192);
    buf_cstr(&line, "{\"what\":");
    buf_json(&line, str_from(what));
    buf_cstr(&line, ",\"result\":");
    buf_json(&line, str_from(result));
    buf_cstr(&line, "}\n");
    fputs(buf_c(&line), stdout);
    fflush(stdout);
    buf_done(&line);
}

void print_json_line(json_t *json)
{
    (void)json_dumpf(json, stdout, JSON_COMPACT);
    (void)putchar('\n');
    json_decref(json);
}
