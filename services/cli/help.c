// SPDX-License-Identifier: Apache-2.0
#include "services/cli/help.h"

#include <string.h>

#include "common/base/buf.h"
#include "services/cli/user_config.h"

static bool is_of_group(const Command *command, const char *group)
{
    size_t len = strlen(group);
    return strncmp(command->name, group, len) == 0 && command->name[len] == ' ';
}

static void print_line(const Command *command)
{
    int first_line = (int)strcspn(command->help, "\n");
    printf("  %-20s  %.*s\n", command->name, first_line, command->help);
}

static void print_usage(const char *before, const Command *command)
{
    Buf usage;
    buf_init(&usage, 4096);
    command_usage(command, &usage);
    printf("%s%s\n", before, buf_c(&usage));
    buf_done(&usage);
}

// "dlq": the usage of each command that begins with it. False: there are none.
static bool print_group(const CommandTable *table, const char *group)
{
    bool any = false;
    for (int i = 0; i < table->count; i++) {
        const Command *command = &table->rows[i];
        if (is_of_group(command, group)) {
            if (!any) {
                printf("usage: stentor [--config FILE] COMMAND (stentor help COMMAND: its "
                       "options)\n\n");
            }
            any = true;
            print_usage("  ", command);
            printf("      %.*s\n", (int)strcspn(command->help, "\n"), command->help);
        }
    }
    return any;
}

// The command whose name is most like what was typed; NULL: none is like it.
static const char *find_nearest(const CommandTable *table, const char *typed)
{
    const char *nearest = NULL;
    size_t least = strlen(typed) / 3 + 1;
    for (int i = 0; i < table->count; i++) {
        size_t distance = str_distance(str_from(typed), str_from(table->rows[i].name));
        if (distance < least) {
            least = distance;
            nearest = table->rows[i].name;
        }
    }
    return nearest;
}

// The commands that begin with the word, separated by commas; empty: none does.
static void put_group(const CommandTable *table, const char *word, Buf *out)
{
    for (int i = 0; i < table->count; i++) {
        if (is_of_group(&table->rows[i], word)) {
            buf_printf(out, "%s%s", out->len > 0 ? ", " : "", table->rows[i].name);
        }
    }
}

int help_unknown(const CommandTable *table, const char *word, const char *second, bool json)
{
    const Cli cli = {.json = json};
    Buf group;
    buf_init(&group, 4096);
    put_group(table, word, &group);
    if (group.len > 0 && (second == NULL || second[0] == '-')) {
        (void)cli_fail_as(
            &cli, EXIT_USAGE, "'%s' needs a second word: %s (stentor help %s)", word, buf_c(&group),
            word);
    } else {
        char typed[STR_DISTANCE_MAX + 1];
        bool both = group.len > 0;
        snprintf(typed, sizeof typed, "%s%s%s", word, both ? " " : "", both ? second : "");
        const char *nearest = find_nearest(table, typed);
        (void)cli_fail_as(
            &cli, EXIT_USAGE, "unknown command '%s'%s%s%s (%s%s)", typed,
            nearest != NULL ? "; did you mean '" : "", nearest != NULL ? nearest : "",
            nearest != NULL ? "'?" : "", both ? "there are " : "stentor help lists all",
            both ? buf_c(&group) : "");
    }
    buf_done(&group);
    return EXIT_USAGE;
}

static void print_settings(const CommandTable *table)
{
    printf(
        "\nSettings come from a file (--config, else $STENTOR_CONFIG, else %s, which\n"
        "`stentor login` writes), from the environment, which wins over the file, and from flags "
        "before\nCOMMAND, which win over both: stentor --api-url URL COMMAND\n\n",
        USER_CONFIG);
    for (size_t i = 0; i < table->setting_count; i++) {
        const Option *row = &table->settings[i];
        bool preset = row->def != NULL && row->def[0] != '\0';
        printf(
            "  %-24s  %s%s%s%s\n", row->name, row->help, preset ? " (default: " : "",
            preset ? row->def : "", preset ? ")" : "");
    }
}

static void print_all(const CommandTable *table)
{
    printf("usage: stentor [--config FILE] COMMAND ... [--json]\n");
    for (int i = 0; i < table->count; i++) {
        if (table->rows[i].section != NULL) {
            printf("\n%s\n", table->rows[i].section);
        }
        print_line(&table->rows[i]);
    }
    printf("\nstentor help COMMAND shows its options; exit status: 0 done, 1 failed, 2 used "
           "wrongly, 3 not found.\n");
    print_settings(table);
}

int help_print(const CommandTable *table, const char *topic)
{
    for (int i = 0; topic != NULL && i < table->count; i++) {
        if (strcmp(topic, table->rows[i].name) == 0) {
            print_usage("usage: stentor [--config FILE] ", &table->rows[i]);
            printf("\n%s\n", table->rows[i].help);
            return EXIT_DONE;
        }
    }
    if (topic != NULL) {
        return print_group(table, topic) ? EXIT_DONE : help_unknown(table, topic, NULL, false);
    }
    print_all(table);
    return EXIT_DONE;
}

int cmd_version(Cli *cli)
{
    (void)cli;
    puts("stentor " STENTOR_VERSION);
    return EXIT_DONE;
}
