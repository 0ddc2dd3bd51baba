// SPDX-License-Identifier: Apache-2.0
// master-key, master-key add|use|remove: print a master key file. Nothing is changed: the operator
// puts the text where the services read it.
#include <openssl/crypto.h>
#include <string.h>

#include "common/session/key_file.h"
#include "services/cli/cli.h"

static int print_changed(
    const Cli *cli, MasterKey *master, const MasterKeyChange *change, Error *err)
{
    char text[MASTER_KEY_FILE_SIZE];
    bool ok = master != NULL && master_key_print(master, change, text, err);
    master_key_free(master);
    if (!ok) {
        return cli_fail(cli, err);
    }
    fputs(text, stdout);
    OPENSSL_cleanse(text, sizeof text);
    return EXIT_DONE;
}

int cmd_master_key(Cli *cli)
{
    Error err = {0};
    char text[132];
    master_key_generate(text);
    MasterKey *master = master_key_parse(str_from(text), &err);
    OPENSSL_cleanse(text, sizeof text);
    return print_changed(cli, master, &(MasterKeyChange){0}, &err);
}

static MasterKey *read_master(Cli *cli, Error *err)
{
    const char *path = cli->settings.master_key_file;
    return cli_need(path, "STENTOR_MASTER_KEY_FILE", err) ? keys_read_file(path, cli->arena, err)
                                                          : NULL;
}

int cmd_master_key_add(Cli *cli)
{
    Error err = {0};
    KeyKind kind = KEY_MASTER;
    const char *name = args_flag(&cli->args, "kind");
    if (name != NULL && !key_kind_from_name(str_from(name), &kind)) {
        error_set(&err, ERROR_USAGE, "--kind '%s': expected master or hash", name);
        return cli_fail(cli, &err);
    }
    MasterKey *master = read_master(cli, &err);
    return print_changed(cli, master, &(MasterKeyChange){.add = (int)kind}, &err);
}

int cmd_master_key_use(Cli *cli)
{
    Error err = {0};
    MasterKey *master = read_master(cli, &err);
    return print_changed(cli, master, &(MasterKeyChange){.first = args_word(&cli->args, 0)}, &err);
}

int cmd_master_key_remove(Cli *cli)
{
    Error err = {0};
    MasterKey *master = read_master(cli, &err);
    return print_changed(
        cli, master, &(MasterKeyChange){.without = args_word(&cli->args, 0)}, &err);
}
