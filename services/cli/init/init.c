// SPDX-License-Identifier: Apache-2.0
// init, init files, init servers: the order of the two halves, and what they share.
#include "services/cli/init/init.h"

#include <string.h>
#include <unistd.h>

#include "common/base/buf.h"
#include "common/base/file.h"
#include "common/bus/topology/nats_rights.h"

enum { INIT_FILE_MAX = 1024 * 1024 }; // as much as a Secret of Kubernetes takes

// clang-format off
static const InitService services[] = {
    {"ingest",           true,  true,  true},
    {"gateway",          true,  true,  true},
    {"renderer",         true,  true,  true},
    {"dispatcher",       true,  true,  true},
    {"webhook",          true,  true,  false},
    {"webhook-receiver", false, true,  false},
    {"digest-flusher",   true,  true,  true},
    {"archiver",         true,  false, false},
    {"order-saga",       true,  true,  true},
};
// clang-format on

const InitService *init_services(size_t *ret_count)
{
    *ret_count = sizeof services / sizeof *services;
    return services;
}

const char *init_folder(const Cli *cli)
{
    const char *folder = args_flag(&cli->args, "folder");
    return folder != NULL ? folder : INIT_FOLDER;
}

const char *init_path(Cli *cli, const char *name)
{
    return arena_printf(cli->arena, "%s/%s", init_folder(cli), name);
}

bool init_read(Cli *cli, const char *name, Str *ret, bool *ret_there, Error *err)
{
    const char *path = init_path(cli, name);
    *ret = STR_EMPTY;
    *ret_there = false;
    if (access(path, F_OK) != 0) {
        return true;
    }
    if (!file_read(path, INIT_FILE_MAX, cli->arena, ret, err)) {
        return false;
    }
    *ret = str_ends(*ret, STR("\n")) ? str_slice(*ret, 0, ret->len - 1) : *ret;
    *ret_there = ret->len > 0;
    return true;
}

const char *init_text(Cli *cli, const char *name, Error *err)
{
    Str text = STR_EMPTY;
    bool there = false;
    if (!init_read(cli, name, &text, &there, err)) {
        return NULL;
    }
    if (!there) {
        error_set(
            err, ERROR_CONFIG, "'%s' does not exist (HINT: stentor init files --folder FOLDER)",
            init_path(cli, name));
        return NULL;
    }
    return arena_cstr(cli->arena, text);
}

const char *init_role(Cli *cli, const char *name)
{
    char *role = arena_printf(cli->arena, "stentor_%s", name);
    for (char *c = role; *c != '\0'; c++) {
        *c = *c == '-' ? '_' : *c;
    }
    return role;
}

bool init_accounts_text(Cli *cli, Str *ret, Error *err)
{
    Buf text;
    Str accounts = STR_EMPTY;
    bool there = false;
    size_t count = 0;
    const NatsRights *access = nats_rights(&count);
    if (!init_read(cli, "accounts", &accounts, &there, err)) {
        return false;
    }
    buf_init(&text, (size_t)2 * INIT_FILE_MAX);
    buf_str(&text, accounts);
    buf_char(&text, '\n');
    bool ok = true;
    for (size_t i = 0; ok && i < count; i++) {
        const char *name = access[i].service + sizeof "stentor-" - 1;
        const char *password = init_text(cli, arena_printf(cli->arena, "%s.password", name), err);
        ok = password != NULL;
        buf_printf(&text, "%s=%s\n", access[i].service, ok ? password : "");
    }
    *ret = arena_str(cli->arena, buf_view(&text));
    buf_done(&text);
    return ok;
}

// ---- the commands ----

static int run(Cli *cli, bool files, bool servers)
{
    Error err = {0};
    bool ok = (!files || init_files(cli, &err)) && (!servers || init_servers(cli, &err));
    return ok ? EXIT_DONE : cli_fail(cli, &err);
}

int cmd_init(Cli *cli)
{
    return run(cli, true, true);
}

int cmd_init_files(Cli *cli)
{
    return run(cli, true, false);
}

int cmd_init_servers(Cli *cli)
{
    return run(cli, false, true);
}
