// SPDX-License-Identifier: Apache-2.0
#include "services/cli/cli.h"

#include <errno.h>
#include <string.h>

// On one line: libpq's texts end with a line break, and have some within.
static void print_line(const char *text)
{
    size_t len = strlen(text);
    bool blank = false;
    fputs("stentor: ", stderr);
    for (size_t i = 0; i < len; i++) {
        bool space = strchr(" \t\r\n", text[i]) != NULL;
        if (!space) {
            fprintf(stderr, "%s%c", blank ? " " : "", text[i]);
        }
        blank = space;
    }
    fputc('\n', stderr);
}

int cli_fail(const Error *err)
{
    fflush(stdout); // what was done first: in one log file the reason stands last
    print_line(err->text);
    return EXIT_FAILED;
}

bool cli_need(const char *value, const char *option, Error *err)
{
    if (value == NULL || value[0] == '\0') {
        return error_set(
            err, ERROR_CONFIG,
            "%s is not set (HINT: in the environment, or in --config FILE; deploy/local/up writes "
            "etc/cli.conf in its data folder)",
            option);
    }
    return true;
}

bool cli_read_file(Cli *cli, const char *path, size_t max, Str *ret, Error *err)
{
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    if (file == NULL) {
        return error_set(err, ERROR_CONFIG, "cannot open '%s': %s", path, strerror(errno));
    }
    char *bytes = arena_alloc(cli->arena, max + 1);
    size_t len = fread(bytes, 1, max + 1, file);
    bool failed = ferror(file) != 0;
    if (file != stdin) {
        fclose(file);
    }
    if (failed) {
        return error_set(err, ERROR_CONFIG, "cannot read '%s': %s", path, strerror(errno));
    }
    if (len > max) {
        return error_set(err, ERROR_PERMANENT, "'%s' is longer than %zu bytes", path, max);
    }
    *ret = str_of(bytes, len);
    return true;
}
