// SPDX-License-Identifier: Apache-2.0
#include "services/cli/run.h"

#include <stdlib.h>
#include <string.h>

#include "common/service/harden.h"
#include "common/service/options.h"
#include "services/cli/help.h"
#include "services/cli/user_config.h"

// The flags before the command, with the file's name among them when none of them is --config: that
// of STENTOR_CONFIG, else the user's own.
static bool load_settings(const CommandTable *table, Cli *cli, int argc, char **argv, Error *err)
{
    static char flag[] = "--config";
    const char *file = getenv("STENTOR_CONFIG");
    bool flagged = false;
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], flag, sizeof flag - 1) == 0) {
            const char *equals = strchr(argv[i], '=');
            file = equals != NULL ? equals + 1 : argv[i + 1];
            flagged = true;
        }
    }
    if (file == NULL && !flagged && !user_config_find(cli->arena, &file, err)) {
        return false;
    }
    char **words = arena_alloc(cli->arena, ((size_t)argc + 3) * sizeof *words);
    int count = 0, rest = 0;
    words[count++] = argv[0];
    if (!flagged && file != NULL && file[0] != '\0') {
        words[count++] = flag;
        words[count++] = arena_printf(cli->arena, "%s", file);
    }
    for (int i = 1; i < argc; i++) {
        words[count++] = argv[i];
    }
    OptionSource *sources = arena_alloc(cli->arena, table->setting_count * sizeof *sources);
    cli->config = file;
    cli->sources = sources;
    return options_load_args(
        table->settings, table->setting_count, &cli->settings, count, words, &rest, sources, err);
}

int command_run(
    const CommandTable *table, const Command *command, int at, int from, int argc, char **argv)
{
    Cli cli = {0};
    Error err = {0};
    if (!args_parse(command, argc - from, argv + from, &cli.args, &err)) {
        fprintf(stderr, "stentor: %s\n", err.text);
        return EXIT_USAGE;
    }
    if (cli.args.help) {
        return help_print(table, command->name);
    }
    int status = EXIT_FAILED;
    cli.arena = arena_new(0);
    cli.json = args_has(&cli.args, "json");
    cli.table = table;
    // A broken file does not stop a shell that starts.
    if (command->run == cmd_completion || command->run == cmd_man || command->run == cmd_version) {
        status = command->run(&cli);
    } else if (!load_settings(table, &cli, at, argv, &err)) {
        status = cli_fail(&err);
    } else {
        if (!cli.settings.core_dumps) {
            process_forbid_dumps();
        }
        status = command->run(&cli);
        options_free(table->settings, table->setting_count, &cli.settings);
    }
    arena_free(cli.arena);
    return status;
}
