// SPDX-License-Identifier: Apache-2.0
#include "services/cli/cli.h"

#include <string.h>

#include "common/base/buf.h"
#include "common/base/file.h"

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
    return file_read(path, max, cli->arena, ret, err);
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
