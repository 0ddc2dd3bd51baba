// SPDX-License-Identifier: Apache-2.0
// subscriber create: a program of a tenant's that reads its statuses gets a NATS user of its own.
// The folder of `init` is all that is touched: the accounts of nats-server first, then the table
// that they are made from. Killed in between, a password that was not printed is in the first
// alone, and a repeated command replaces it.
#include <fcntl.h>
#include <openssl/crypto.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/buf.h"
#include "common/base/file.h"
#include "common/base/id.h"
#include "common/bus/topology/accounts.h"
#include "services/cli/init/init.h"
#include "services/cli/init/nats_hash.h"

enum { PASSWORD_BYTES = 24, PASSWORD_SIZE = 33, NATS_CONF_MAX = 64 * 1024 * 1024 };

// Whoever could read the file still can: nats-server reads the accounts as another user.
static bool put(Cli *cli, const char *name, Str text, Error *err)
{
    struct stat now;
    FilePut done;
    FileRights rights = {.mode = 0600, .group = (gid_t)-1};
    const char *path = init_path(cli, name);
    if (stat(path, &now) == 0) {
        rights = (FileRights){.mode = now.st_mode & 0777, .group = now.st_gid};
    }
    return file_put(path, text, &rights, true, &done, err);
}

// The whole table with the new lines, as nats-server is to read it.
static bool put_accounts(Cli *cli, Str lines, Error *err)
{
    Accounts accounts;
    Str present = STR_EMPTY;
    if (!init_accounts_text(cli, &present, err)) {
        return false;
    }
    Str all =
        str_from(arena_printf(cli->arena, STR_FMT "\n" STR_FMT, STR_ARG(present), STR_ARG(lines)));
    if (!accounts_read(all, cli->arena, &accounts, err)) {
        err->kind = ERROR_USAGE;
        return error_wrap(err, "'%s' with this subscriber", init_path(cli, "accounts"));
    }
    nats_hash_passwords(&accounts, cli->arena);
    Buf out;
    buf_init(&out, NATS_CONF_MAX);
    bool ok = accounts_write(&out, &accounts) ||
              error_set(err, ERROR_PERMANENT, "the accounts of NATS are longer than 64 MB");
    ok = ok && put(cli, "nats-accounts.conf", buf_view(&out), err);
    buf_done(&out);
    return ok;
}

static bool put_table(Cli *cli, Str lines, Error *err)
{
    Str table = STR_EMPTY;
    bool there = false;
    if (!init_read(cli, "accounts", &table, &there, err)) {
        return false;
    }
    const char *between = table.len > 0 ? "\n" : "";
    Str text = str_from(
        arena_printf(cli->arena, STR_FMT "%s" STR_FMT, STR_ARG(table), between, STR_ARG(lines)));
    return put(cli, "accounts", text, err);
}

// One change of the folder at a time, as `init files`.
static int lock_folder(const Cli *cli, Error *err)
{
    int fd = open(init_folder(cli), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || flock(fd, LOCK_EX) != 0) {
        (void)error_set(
            err, ERROR_CONFIG, "cannot open '%s' (HINT: --folder FOLDER, the one of stentor init)",
            init_folder(cli));
        if (fd >= 0) {
            close(fd);
        }
        return -1;
    }
    return fd;
}

static const char *tenant_of(const Cli *cli)
{
    const char *tenant = args_flag(&cli->args, "tenant");
    return tenant != NULL ? tenant : cli->settings.tenant;
}

static void show(const Cli *cli, const char *name, const char *password)
{
    print_pairs(
        cli,
        (const char *const[]){"user", name, "password", password, "tenant", tenant_of(cli), NULL});
    if (!cli->json) {
        cli_note(
            cli, "reload nats-server (kill -HUP) twice, a second apart: version 2.9 lets a new "
                 "user in at the first and connects it to STATUS at the second");
    }
}

static bool create(Cli *cli, const char *password, Error *err)
{
    const char *name = args_word(&cli->args, 0);
    const char *tenant = tenant_of(cli);
    if (!cli_need(tenant, "STENTOR_TENANT", err)) {
        return false;
    }
    Str lines = str_from(
        arena_printf(cli->arena, "subscriber %s tenant=%s\n%s=%s\n", name, tenant, name, password));
    int folder = lock_folder(cli, err);
    if (folder < 0) {
        return false;
    }
    bool ok = put_accounts(cli, lines, err) && put_table(cli, lines, err);
    close(folder);
    return ok;
}

int cmd_subscriber_create(Cli *cli)
{
    Error err = {0};
    uint8_t random[PASSWORD_BYTES];
    char password[PASSWORD_SIZE];
    random_bytes(random, sizeof random);
    base64url_encode(random, sizeof random, password);
    bool ok = create(cli, password, &err);
    if (ok) {
        show(cli, args_word(&cli->args, 0), password);
    }
    OPENSSL_cleanse(random, sizeof random);
    OPENSSL_cleanse(password, sizeof password);
    return ok ? EXIT_DONE : cli_fail(cli, &err);
}
