// SPDX-License-Identifier: Apache-2.0
// man: the manual page (man(7) macros) and COMMANDS.md, made from the command table.
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

// A line of a command's help.
typedef struct HelpLine {
    Str option;   // "--name TEXT"; empty: a sentence
    Str text;     // what it does
    bool goes_on; // with the line before
} HelpLine;

// "  --name TEXT   display name". A line that is indented further than the options continues the
// last one.
static HelpLine read_help(Str written)
{
    Str line = str_trim(written);
    bool goes_on = line.ptr - written.ptr > 2;
    size_t gap = 0;
    while (gap < line.len && !str_starts(str_slice(line, gap, line.len), STR("  "))) {
        gap++;
    }
    if (!str_starts(line, STR("--")) && gap == line.len) {
        return (HelpLine){.text = line, .goes_on = goes_on};
    }
    return (HelpLine){
        .option = str_slice(line, 0, gap), .text = str_trim(str_slice(line, gap, line.len))};
}

static void put_help(Buf *out, Str written, bool first)
{
    HelpLine line = read_help(written);
    if (line.option.len == 0) {
        put_line(out, first || line.goes_on ? "" : ".PP\n", line.text);
        return;
    }
    buf_cstr(out, ".TP\n");
    put_line(out, ".B ", line.option);
    if (line.text.len > 0) {
        put_line(out, "", line.text);
    }
}

static void put_command(Buf *out, const Command *command)
{
    Str rest = str_from(command->help), line;
    Buf usage;
    buf_init(&usage, 4096);
    command_usage(command, &usage);
    buf_cstr(out, ".SS \"stentor ");
    put_text(out, buf_view(&usage));
    buf_cstr(out, "\"\n");
    buf_done(&usage);
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
        out, ".TH STENTOR 1 \"\" \"stentor " STENTOR_VERSION "\" \"Stentor\"\n.ad l\n"
             ".SH NAME\nstentor \\- send notifications, and operate the services that send them\n"
             ".SH SYNOPSIS\n.B stentor\n[\\fB\\-\\-\\fISETTING VALUE\\fR ...]\n.I COMMAND\n"
             "[\\fIWORD\\fR ...] [\\fB\\-\\-\\fIOPTION\\fR ...] [\\fB\\-\\-json\\fR]\n"
             ".SH DESCRIPTION\n"
             "Calls the API; the commands that operate an installation use NATS and Postgres.\n"
             "Answers are text, or JSON with\n.BR \\-\\-json :\n"
             "a list is one array, a stream of records one object a line. Errors are one line on\n"
             "standard error, with\n.B \\-\\-json\nan object with error and exit_status.\n"
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
        "0 done, 1 failed, 2 used wrongly (the command line, a setting, or a request that the API "
        "finds invalid), 3 not found.\n");
}

// ---- Markdown ----

static void md_command(Buf *out, const Command *command)
{
    Str rest = str_from(command->help), line;
    bool listed = false;
    buf_printf(out, "\n### %s\n\n```\nstentor ", command->name);
    command_usage(command, out);
    buf_cstr(out, "\n```\n\n");
    while (str_split(&rest, '\n', &line)) {
        HelpLine help = read_help(line);
        if (help.option.len > 0) {
            buf_cstr(out, listed ? "" : "\n");
            buf_printf(out, "- `" STR_FMT "`", STR_ARG(help.option));
            buf_printf(out, "%s" STR_FMT "\n", help.text.len > 0 ? ": " : "", STR_ARG(help.text));
        } else {
            buf_printf(
                out, "%s" STR_FMT "\n",
                !listed        ? ""
                : help.goes_on ? "  "
                               : "\n",
                STR_ARG(help.text));
        }
        listed = help.option.len > 0 || (listed && help.goes_on);
    }
}

static void md_page(Buf *out, const CommandTable *table)
{
    buf_cstr(
        out, "# Commands of `stentor`\n\n"
             "Made from the command table: `stentor man --markdown > services/cli/COMMANDS.md`. "
             "Do not edit it.\n"
             "Exit status, JSON, settings and rights: [README](README.md).\n");
    for (int i = 0; i < table->count; i++) {
        if (table->rows[i].section != NULL) {
            buf_printf(out, "\n## %s\n", table->rows[i].section);
        }
        md_command(out, &table->rows[i]);
    }
    buf_cstr(out, "\n## Settings\n\n");
    options_markdown(table->settings, table->setting_count, out);
}

int cmd_man(Cli *cli)
{
    Buf out;
    buf_init(&out, PAGE_MAX);
    if (args_has(&cli->args, "markdown")) {
        md_page(&out, cli->table);
    } else {
        put_page(&out, cli->table);
    }
    fputs(buf_c(&out), stdout);
    buf_done(&out);
    return EXIT_DONE;
}
