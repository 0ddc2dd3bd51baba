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
    printf("  %-18s  %.*s\n", command->name, first_line, command->help);
}

// "dlq": the commands that begin with it. False: there are none.
static bool print_group(const CommandTable *table, const char *group)
{
    bool any = false;
    for (int i = 0; i < table->count; i++) {
        if (is_of_group(&table->rows[i], group)) {
            any = true;
            print_line(&table->rows[i]);
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

// The commands that begin with the word, in one line.
static void print_choice(const CommandTable *table, const char *word)
{
    const char *before = "stentor: say which: ";
    for (int i = 0; i < table->count; i++) {
        if (is_of_group(&table->rows[i], word)) {
            fprintf(stderr, "%s%s", before, table->rows[i].name);
            before = ", ";
        }
    }
    fprintf(stderr, " (stentor help %s)\n", word);
}

int help_unknown(const CommandTable *table, const char *word, const char *second)
{
    bool group = false;
    for (int i = 0; i < table->count; i++) {
        group = group || is_of_group(&table->rows[i], word);
    }
    bool both = group && second != NULL && second[0] != '-';
    if (group && !both) {
        print_choice(table, word);
        return EXIT_USAGE;
    }
    char typed[STR_DISTANCE_MAX + 1];
    snprintf(typed, sizeof typed, "%s%s%s", word, both ? " " : "", both ? second : "");
    const char *nearest = find_nearest(table, typed);
    fprintf(stderr, "stentor: unknown command '%s'", typed);
    if (nearest != NULL) {
        fprintf(stderr, "; did you mean '%s'?", nearest);
    }
    fprintf(stderr, " (stentor help lists them)\n");
    return EXIT_USAGE;
}

int help_print(const CommandTable *table, const char *topic)
{
    for (int i = 0; topic != NULL && i < table->count; i++) {
        if (strcmp(topic, table->rows[i].name) == 0) {
            const Command *command = &table->rows[i];
            bool json = str_ends(str_from(command->flags), STR("json"));
            printf(
                "usage: stentor [--config FILE] %s%s%s%s\n\n%s\n", command->name,
                command->usage[0] != '\0' ? " " : "", command->usage, json ? " [--json]" : "",
                command->help);
            return EXIT_DONE;
        }
    }
    if (topic != NULL) {
        return print_group(table, topic) ? EXIT_DONE : help_unknown(table, topic, NULL);
    }
    printf("usage: stentor [--config FILE] COMMAND ... [--json]\n\n");
    for (int i = 0; i < table->count; i++) {
        print_line(&table->rows[i]);
    }
    printf(
        "\nstentor help COMMAND tells its options. Settings come from a file (--config, else "
        "$STENTOR_CONFIG, else\n%s, which `stentor login` writes), the environment, "
        "which wins over it, and\nflags before COMMAND, which win over both: "
        "stentor --api-url URL COMMAND.\n",
        USER_CONFIG);
    Buf rows;
    buf_init(&rows, 64 * 1024);
    options_markdown(table->settings, table->setting_count, &rows);
    printf("%s", buf_c(&rows));
    buf_done(&rows);
    return EXIT_DONE;
}

int cmd_version(Cli *cli)
{
    (void)cli;
    puts("stentor " STENTOR_VERSION);
    return EXIT_DONE;
}
