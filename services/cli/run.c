// SPDX-License-Identifier: Apache-2.0
#include "services/cli/run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/service/harden.h"
#include "common/service/options.h"
#include "services/cli/help.h"
#include "services/cli/user_config.h"

bool run_wants_json(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            return true;
        }
    }
    return false;
}

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

// A settings file of another user's, as `deploy/local/up` writes one for root.
static void explain_config(const Cli *cli, Error *err)
{
    if (cli->config != NULL && access(cli->config, R_OK) != 0 && errno == EACCES) {
        error_set(
            err, ERROR_USAGE,
            "no right to read the settings in '%s' (HINT: sudo stentor ..., or ask an operator for "
            "an API key: stentor login URL writes settings of your own)",
            cli->config);
    }
}

// Without the settings: a broken file must not stop a shell that starts.
static bool needs_no_settings(const Command *command)
{
    return command->run == cmd_completion || command->run == cmd_man || command->run == cmd_version;
}

static int run(Cli *cli, const CommandTable *table, int at, char **argv)
{
    Error err = {0};
    if (needs_no_settings(cli->command)) {
        return cli->command->run(cli);
    }
    if (!load_settings(table, cli, at, argv, &err)) {
        err.kind = ERROR_USAGE;
        explain_config(cli, &err);
        return cli_fail(cli, &err);
    }
    if (!cli->settings.core_dumps) {
        process_forbid_dumps();
    }
    int status = cli->command->run(cli);
    options_free(table->settings, table->setting_count, &cli->settings);
    return status;
}

int command_run(
    const CommandTable *table, const Command *command, int at, int from, int argc, char **argv)
{
    Cli cli = {.table = table, .command = command};
    Error err = {0};
    bool parsed = args_parse(command, argc - from, argv + from, &cli.args, &err);
    if (parsed && cli.args.help) {
        return help_print(table, command->name);
    }
    cli.json = parsed ? args_has(&cli.args, "json") : run_wants_json(argc, argv);
    if (!parsed) {
        return cli_fail(&cli, &err);
    }
    cli.arena = arena_new(0);
    int status = run(&cli, table, at, argv);
    arena_free(cli.arena);
    return status;
}
