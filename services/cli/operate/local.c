// SPDX-License-Identifier: Apache-2.0
// up, down: the scripts of deploy/local. They replace this process.
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "services/cli/cli.h"

static int run_script(Cli *cli, const char *name)
{
    const char *path = arena_printf(cli->arena, "%s/deploy/local/%s", cli_home(cli), name);
    char *argv[4] = {arena_printf(cli->arena, "%s", path)};
    int count = 1;
    if (cli->json) {
        argv[count++] = arena_printf(cli->arena, "--json");
    }
    if (args_has(&cli->args, "wipe")) {
        argv[count++] = arena_printf(cli->arena, "--wipe");
    }
    argv[count] = NULL;
    execv(path, argv);
    Error err;
    error_set(
        &err, ERROR_USAGE, "cannot run '%s': %s (HINT: STENTOR_HOME is the folder of the source)",
        path, strerror(errno));
    return cli_fail(cli, &err);
}

int cmd_up(Cli *cli)
{
    return run_script(cli, "up");
}

int cmd_down(Cli *cli)
{
    return run_script(cli, "down");
}
