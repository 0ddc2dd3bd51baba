// SPDX-License-Identifier: Apache-2.0
// What operators see of a table of options: --help, the README's table, the values of the start-up
// line.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/log.h"
#include "common/service/option_value.h"

bool options_print(const Option *row, const void *options, Buf *out)
{
    const char *field = (const char *)options + row->offset;
    const char *text = NULL;
    int64_t number = 0;
    bool flag = false;
    switch (row->type) {
    case OPTION_TEXT:
        memcpy(&text, field, sizeof text);
        if (row->secret) {
            buf_cstr(out, str_from(text).len > 0 ? "***" : "");
        } else {
            mask_urls(str_from(text), out);
        }
        break;
    case OPTION_INT:
        memcpy(&number, field, sizeof number);
        buf_printf(out, "%" PRId64, number);
        break;
    case OPTION_BOOL:
        memcpy(&flag, field, sizeof flag);
        buf_cstr(out, flag ? "true" : "false");
        break;
    }
    return !out->full;
}

static const char *default_text(const Option *row)
{
    if (row->def == NULL) {
        return "required";
    }
    return row->def[0] == '\0' ? "none" : row->def;
}

bool options_help(
    const Option *table, size_t count, const char *program, const char *summary, Buf *out)
{
    buf_printf(out, "Usage: %s [--config FILE] [--name VALUE ...]\n\n%s\n\n", program, summary);
    buf_cstr(
        out, "Each option may come from the command line, the environment (NAME) or the file "
             "of --config\n(lines NAME=value); the first of these that has it counts. A "
             "secret may also stand in a file: NAME_FILE.\n\n");
    for (size_t i = 0; i < count; i++) {
        const Option *row = &table[i];
        buf_cstr(out, "  ");
        buf_cstr(out, "--"); // "STENTOR_NATS_URL" -> "--nats-url"
        for (const char *c = option_flag(row->name); *c != '\0'; c++) {
            bool letter = *c >= 'A' && *c <= 'Z';
            buf_char(out, letter ? (char)(*c - 'A' + 'a') : *c == '_' ? '-' : *c);
        }
        buf_printf(
            out, "  (%s, %s%s)\n      %s\n", row->name, row->def != NULL ? "default " : "",
            default_text(row), row->help);
    }
    buf_cstr(
        out, "\n  --ready              ask the process that runs with these options whether it can "
             "work; exit status 1: not\n"
             "  --routes             ask it for the routes of its API\n"
             "  --help --version --options-markdown\n");
    return !out->full;
}

bool options_markdown(const Option *table, size_t count, Buf *out)
{
    buf_cstr(out, "| name | default | meaning |\n|---|---|---|\n");
    for (size_t i = 0; i < count; i++) {
        const Option *row = &table[i];
        bool literal = row->def != NULL && row->def[0] != '\0';
        buf_printf(
            out, "| `%s` | %s%s%s | %s%s |\n", row->name, literal ? "`" : "", default_text(row),
            literal ? "`" : "", row->help, row->secret ? " (secret; or a file in NAME_FILE)" : "");
    }
    return !out->full;
}
