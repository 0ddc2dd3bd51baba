// SPDX-License-Identifier: Apache-2.0
// man: the manual page (man(7) macros), made from the command table.
#include <string.h>

#include "common/base/buf.h"
#include "services/cli/cli.h"
#include "services/cli/user_config.h"

enum { PAGE_MAX = 1024 * 1024 };

// Text at the beginning of a line or within one: nothing in it is a request or an escape.
static void put_text(Buf *out, Str text)
{
    if (text.len > 0 && (text.ptr[0] == '.' || text.ptr[0] == '\'')) {
        buf_cstr(out, "\\&");
    }
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        buf_cstr(out, c == '\\' ? "\\e" : c == '-' ? "\\-" : (char[]){c, '\0'});
    }
}

static void put_line(Buf *out, const char *macro, Str text)
{
    buf_cstr(out, macro);
    put_text(out, text);
    buf_char(out, '\n');
}

// "--name TEXT   display name": a tagged paragraph. A line that is indented further goes on with
// the last one; another one begins a paragraph.
static void put_help(Buf *out, Str written, bool first)
{
    Str line = str_trim(written);
    ptrdiff_t gap = -1;
    for (size_t i = 0; i + 1 < line.len && gap < 0; i++) {
        gap = line.ptr[i] == ' ' && line.ptr[i + 1] == ' ' ? (ptrdiff_t)i : -1;
    }
    if (!str_starts(line, STR("--"))) {
        bool goes_on = first || line.ptr - written.ptr > 2;
        put_line(out, goes_on ? "" : ".PP\n", line);
        return;
    }
    buf_cstr(out, ".TP\n");
    put_line(out, ".B ", gap < 0 ? line : str_slice(line, 0, (size_t)gap));
    if (gap >= 0) {
        put_line(out, "", str_trim(str_slice(line, (size_t)gap, line.len)));
    }
}

static void put_command(Buf *out, const Command *command)
{
    Str rest = str_from(command->help), line;
    buf_cstr(out, ".SS \"stentor ");
    put_text(out, str_from(command->name));
    buf_char(out, command->usage[0] != '\0' ? ' ' : '"');
    if (command->usage[0] != '\0') {
        put_text(out, str_from(command->usage));
        buf_char(out, '"');
    }
    buf_char(out, '\n');
    while (str_split(&rest, '\n', &line)) {
        put_help(out, line, line.ptr == command->help);
    }
}

static void put_setting(Buf *out, const Option *row)
{
    buf_cstr(out, ".TP\n");
    put_line(out, ".B ", str_from(row->name));
    put_line(out, "", str_from(row->help));
    if (row->def != NULL && row->def[0] != '\0') {
        buf_cstr(out, "(default: ");
        put_text(out, str_from(row->def));
        buf_cstr(out, ")\n");
    }
}

static void put_page(Buf *out, const CommandTable *table)
{
    buf_cstr(
        out, ".TH STENTOR 1 \"\" \"stentor " STENTOR_VERSION "\" \"Stentor\"\n"
             ".SH NAME\nstentor \\- send notifications, and operate what sends them\n"
             ".SH SYNOPSIS\n.B stentor\n[\\fB\\-\\-\\fISETTING VALUE\\fR ...]\n.I COMMAND\n"
             "[\\fIWORD\\fR ...] [\\fB\\-\\-\\fIOPTION\\fR ...] [\\fB\\-\\-json\\fR]\n"
             ".SH DESCRIPTION\n"
             "Talks to the API, and for what operates an installation to NATS and Postgres.\n"
             "Answers are printed for people, and as JSON with\n.BR \\-\\-json .\n"
             ".SH COMMANDS\n");
    for (int i = 0; i < table->count; i++) {
        put_command(out, &table->rows[i]);
    }
    buf_cstr(
        out,
        ".SH SETTINGS\n"
        "A setting is an environment variable, a line\n.I NAME=value\nof the settings' file, or a "
        "flag before the command:\nSTENTOR_API_URL is\n.BR \\-\\-api\\-url .\n"
        "A flag wins over the environment, and that over the file.\n"
        "Of a secret, NAME_FILE names a file that holds it.\n");
    for (size_t i = 0; i < table->setting_count; i++) {
        put_setting(out, &table->settings[i]);
    }
    buf_cstr(out, ".SH FILES\n.TP\n");
    put_line(out, ".I ", STR(USER_CONFIG));
    buf_cstr(
        out,
        "The settings' file, unless\n.B \\-\\-config\nor\n.B STENTOR_CONFIG\nnames another; in\n"
        ".I $XDG_CONFIG_HOME/stentor\nwhere that is set. It is refused when others may read it.\n"
        ".SH EXIT STATUS\n"
        "0 done, 1 failed, 2 used wrongly, 3 not found.\n");
}

int cmd_man(Cli *cli)
{
    Buf out;
    buf_init(&out, PAGE_MAX);
    put_page(&out, cli->table);
    fputs(buf_c(&out), stdout);
    buf_done(&out);
    return EXIT_DONE;
}
