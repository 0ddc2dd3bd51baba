// SPDX-License-Identifier: Apache-2.0
// init files, in this order: where epoch keys are, secrets that are made (passwords, keys), what is
// put together from them (connection strings), settings, the accounts of NATS. Each file is put
// whole or not at all; so wherever a run ends, the next finds what is there and makes the rest.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <openssl/crypto.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/api/api_key.h"
#include "common/base/buf.h"
#include "common/base/crash.h"
#include "common/base/file.h"
#include "common/base/id.h"
#include "common/bus/topology/accounts.h"
#include "common/codec/master_key.h"
#include "common/db/install/conninfo.h"
#include "common/erasure/erasure_key.h"
#include "services/cli/init/conf_merge.h"
#include "services/cli/init/init_conf.h"
#include "services/cli/init/nats_hash.h"

#define DATABASE_DEFAULT "host=127.0.0.1 port=5432 dbname=stentor"

enum { PASSWORD_BYTES = 24, PASSWORD_SIZE = 33, NATS_CONF_MAX = 64 * 1024 * 1024 };

// ---- rights ----

static bool find_group(const char *name, gid_t *ret, Error *err)
{
    int64_t number = 0;
    const struct group *group = getgrnam(name);
    if (group != NULL) {
        *ret = group->gr_gid;
        return true;
    }
    if (str_to_i64(str_from(name), &number) && number >= 0 && number < UINT32_MAX) {
        *ret = (gid_t)number;
        return true;
    }
    return error_set(
        err, ERROR_USAGE, "there is no group '%s' (HINT: groupadd --system %s)", name, name);
}

// 0600, or 0640 for the group of --group, or for `reader`'s of --service-groups; reader NULL: no
// service reads it.
static bool rights_for(Cli *cli, const char *reader, FileRights *ret, Error *err)
{
    const char *group = args_flag(&cli->args, "group");
    if (args_has(&cli->args, "service-groups")) {
        group = reader != NULL ? arena_printf(cli->arena, "stentor-%s", reader) : NULL;
    }
    *ret = (FileRights){.mode = group != NULL ? 0640 : 0600, .group = (gid_t)-1};
    return group == NULL || find_group(group, &ret->group, err);
}

// ---- one file ----

static bool put(Cli *cli, const char *name, const char *reader, Str text, bool replaces, Error *err)
{
    FileRights rights;
    FilePut done = FILE_PRESENT;
    if (!rights_for(cli, reader, &rights, err) ||
        !file_put(init_path(cli, name), text, &rights, replaces, &done, err)) {
        return false;
    }
    if (done == FILE_WRITTEN) {
        CRASH_POINT("init.file_written");
    }
    cli_step(cli, name, done == FILE_WRITTEN ? "written" : "present");
    return true;
}

// An empty one is what a full disk or a copy that broke off leaves: it is no secret.
static bool has(Cli *cli, const char *name, bool *ret, Error *err)
{
    Str text = STR_EMPTY;
    return init_read(cli, name, &text, ret, err);
}

static bool put_secret(Cli *cli, const char *name, const char *reader, const char *text, Error *err)
{
    bool there = false;
    return has(cli, name, &there, err) &&
           put(cli, name, reader, str_from(arena_printf(cli->arena, "%s\n", text)), !there, err);
}

static bool put_settings(Cli *cli, const char *name, const char *reader, Str text, Error *err)
{
    return put(cli, name, reader, text, args_has(&cli->args, "renew"), err);
}

// Settings, of which those that the operator changed stay.
static bool put_conf(Cli *cli, const char *name, const char *reader, Str fresh, Error *err)
{
    bool there = false;
    Str current = STR_EMPTY;
    ConfMerge merged = {.text = fresh};
    if (args_has(&cli->args, "renew") && !init_read(cli, name, &current, &there, err)) {
        return false;
    }
    if (there) {
        merged = conf_merge(current, fresh, cli->arena);
    }
    if (!put_settings(cli, name, reader, merged.text, err)) {
        return false;
    }
    for (size_t i = 0; i < merged.n_kept; i++) {
        cli_step(cli, arena_printf(cli->arena, "%s: %s", name, merged.kept[i]), "kept");
    }
    return true;
}

static bool put_nats_conf(Cli *cli, Error *err)
{
    bool there = false;
    Str current = STR_EMPTY;
    Str fresh = init_nats_conf(cli);
    if (args_has(&cli->args, "renew") && !init_read(cli, "nats.conf", &current, &there, err)) {
        return false;
    }
    current = str_from(arena_printf(cli->arena, STR_FMT "\n", STR_ARG(current)));
    if (!there || conf_whole_is_ours(current, fresh)) {
        return put_settings(cli, "nats.conf", "nats", fresh, err);
    }
    cli_step(cli, "nats.conf: the whole file", "kept");
    return true;
}

// ---- passwords ----

// What --passwords FILE has for the user; NULL: nothing.
static bool given_password(Cli *cli, const char *user, const char **ret, Error *err)
{
    const char *path = args_flag(&cli->args, "passwords");
    Str rest = STR_EMPTY, line = STR_EMPTY, name = STR_EMPTY;
    *ret = NULL;
    if (path != NULL && !cli_read_file(cli, path, OPTION_FILE_MAX, &rest, err)) {
        return false;
    }
    while (rest.len > 0 && str_split(&rest, '\n', &line)) {
        if (str_split(&line, '=', &name) && str_eq(str_trim(name), str_from(user))) {
            *ret = arena_cstr(cli->arena, str_trim(line));
        }
    }
    return true;
}

static bool put_password(
    Cli *cli, const char *name, const char *user, const char *reader, Error *err)
{
    uint8_t random[PASSWORD_BYTES];
    char made[PASSWORD_SIZE];
    const char *given = NULL;
    if (!given_password(cli, user, &given, err)) {
        return false;
    }
    random_bytes(random, sizeof random);
    base64url_encode(random, sizeof random, made);
    bool ok = put_secret(
        cli, arena_printf(cli->arena, "%s.password", name), reader,
        given != NULL && given[0] != '\0' ? given : made, err);
    OPENSSL_cleanse(random, sizeof random);
    OPENSSL_cleanse(made, sizeof made);
    return ok;
}

static bool put_passwords(Cli *cli, Error *err)
{
    static const char *const own[][2] = {
        {"admin", "stentor-admin"},
        {"cli", "stentor-cli"},
        {"owner", "stentor-owner"},
        {"postgres", "postgres"},
    };
    size_t count = 0;
    const InitService *services = init_services(&count);
    bool ok = true;
    for (size_t i = 0; ok && i < count; i++) {
        ok = put_password(
            cli, services[i].name, arena_printf(cli->arena, "stentor-%s", services[i].name),
            services[i].name, err);
    }
    for (size_t i = 0; ok && i < sizeof own / sizeof *own; i++) {
        ok = put_password(cli, own[i][0], own[i][1], NULL, err);
    }
    return ok;
}

// ---- keys ----

static bool put_master_key(Cli *cli, Error *err)
{
    char random[132], text[MASTER_KEY_FILE_SIZE];
    master_key_generate(random);
    MasterKey *master = master_key_parse(str_from(random), err);
    bool ok = master != NULL && master_key_print(master, &(MasterKeyChange){0}, text, err);
    bool there = false;
    ok = ok && has(cli, "master.key", &there, err) &&
         put(cli, "master.key", "keys", str_from(text), !there, err);
    master_key_free(master);
    OPENSSL_cleanse(random, sizeof random);
    OPENSSL_cleanse(text, sizeof text);
    return ok;
}

// Its hash is what the servers learn later, so that no key is made and lost.
static bool put_operator_key(Cli *cli, Error *err)
{
    Stentor__V1__ApiKey key;
    stentor__v1__api_key__init(&key);
    return put_secret(cli, "operator.key", NULL, api_key_make(&key, cli->arena), err);
}

// It signs certificates of erasure and opens nothing.
static bool put_erasure_key(Cli *cli, Error *err)
{
    Str pem = STR_EMPTY;
    bool there = false;
    return has(cli, "erasure.key", &there, err) && erasure_key_make(cli->arena, &pem, err) &&
           put(cli, "erasure.key", NULL, pem, !there, err);
}

// Before the master key: without it an installation is a new one, which a run that was killed is
// too.
static bool put_epochs(Cli *cli, Error *err)
{
    const char *chosen = NULL;
    FileRights keys;
    return init_epochs_choose(cli, &chosen, err) &&
           put(cli, "epoch-keys", NULL, str_from(arena_printf(cli->arena, "%s\n", chosen)), true,
               err) &&
           rights_for(cli, "keys", &keys, err) && init_epochs_make(cli, keys.group, err);
}

// ---- connection strings ----

static bool put_database_url(
    Cli *cli, const char *name, const char *user, const char *password_of, const char *reader,
    Error *err)
{
    const char *database = args_flag(&cli->args, "database");
    const char *password =
        init_text(cli, arena_printf(cli->arena, "%s.password", password_of), err);
    ConninfoPart parts[] = {{"user", user}, {"password", password}, {NULL, NULL}};
    const char *url =
        password == NULL
            ? NULL
            : conninfo_with(cli->arena, database != NULL ? database : DATABASE_DEFAULT, parts, err);
    return url != NULL && put_settings(
                              cli, arena_printf(cli->arena, "%s.database-url", name), reader,
                              str_from(arena_printf(cli->arena, "%s\n", url)), err);
}

// Before anything is written.
static bool check_database(Cli *cli, Error *err)
{
    static const char *const ours[] = {"user", "password", "passfile"};
    const char *database = args_flag(&cli->args, "database");
    if (database != NULL &&
        conninfo_with(cli->arena, database, (ConninfoPart[]){{NULL, NULL}}, err) == NULL) {
        return error_wrap(err, "--database");
    }
    for (size_t i = 0; database != NULL && i < sizeof ours / sizeof *ours; i++) {
        if (conninfo_get(cli->arena, database, ours[i]) != NULL) {
            return error_set(
                err, ERROR_USAGE,
                "--database names a %s: each program has its own (HINT: host, port, dbname and TLS "
                "only)",
                ours[i]);
        }
    }
    return true;
}

static bool put_database_urls(Cli *cli, Error *err)
{
    size_t count = 0;
    const InitService *services = init_services(&count);
    bool ok = true;
    for (size_t i = 0; ok && i < count; i++) {
        const char *name = services[i].name;
        ok = !services[i].wants_database ||
             put_database_url(cli, name, init_role(cli, name), name, name, err);
    }
    return ok && put_database_url(cli, "cli", "stentor_cli", "cli", NULL, err) &&
           put_database_url(cli, "owner", "stentor_owner", "owner", NULL, err) &&
           put_database_url(cli, "superuser", "postgres", "postgres", NULL, err);
}

// ---- settings ----

static bool put_confs(Cli *cli, Error *err)
{
    size_t count = 0;
    const char *epochs = NULL;
    const InitService *services = init_services(&count);
    bool ok = init_epochs_folder(cli, &epochs, err);
    for (size_t i = 0; ok && i < count; i++) {
        ok = put_conf(
            cli, arena_printf(cli->arena, "%s.conf", services[i].name), services[i].name,
            init_service_conf(cli, &services[i], epochs), err);
    }
    return ok && put_conf(cli, "admin.conf", NULL, init_admin_conf(cli), err) &&
           put_conf(cli, "cli.conf", NULL, init_cli_conf(cli, epochs), err) &&
           put_nats_conf(cli, err);
}

// ---- the accounts of NATS ----

// What a running server and this release say of them: nothing in it is the operator's own.
static bool put_nats_accounts(Cli *cli, Error *err)
{
    const char *path = args_flag(&cli->args, "accounts");
    Str text = STR_EMPTY;
    Accounts accounts;
    if (path != NULL && (!cli_read_file(cli, path, OPTION_FILE_MAX, &text, err) ||
                         !put(cli, "accounts", NULL, text, true, err))) {
        return false;
    }
    if (!init_accounts_text(cli, &text, err) || !accounts_read(text, cli->arena, &accounts, err)) {
        return error_wrap(err, "'%s'", path != NULL ? path : init_path(cli, "accounts"));
    }
    nats_hash_passwords(&accounts, cli->arena);
    Buf out;
    buf_init(&out, NATS_CONF_MAX);
    bool ok = accounts_write(&out, &accounts) ||
              error_set(err, ERROR_PERMANENT, "the accounts of NATS are longer than 64 MB");
    ok = ok && put(cli, "nats-accounts.conf", "nats", buf_view(&out), true, err);
    buf_done(&out);
    return ok;
}

// ---- the folder ----

// Of a run that was killed while it wrote.
static bool is_leftover(const char *name)
{
    enum { RANDOM = 6 };
    const char *mark = strstr(name, FILE_TEMPORARY);
    return mark != NULL && strlen(mark) == sizeof FILE_TEMPORARY - 1 + RANDOM;
}

static void sweep(int folder)
{
    DIR *dir = fdopendir(dup(folder));
    const struct dirent *entry = dir != NULL ? readdir(dir) : NULL;
    for (; entry != NULL; entry = readdir(dir)) {
        if (is_leftover(entry->d_name)) {
            (void)unlinkat(folder, entry->d_name, 0);
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
}

// One run at a time in a folder; -1: *err.
static int open_folder(Cli *cli, Error *err)
{
    const char *path = init_folder(cli);
    if (mkdir(path, 0711) != 0 && errno != EEXIST) {
        error_set(
            err, ERROR_CONFIG, "cannot make '%s': %s (HINT: --folder FOLDER)", path,
            strerror(errno));
        return -1;
    }
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || flock(fd, LOCK_EX) != 0) {
        error_set(err, ERROR_CONFIG, "cannot open '%s': %s", path, strerror(errno));
        if (fd >= 0) {
            close(fd);
        }
        return -1;
    }
    return fd;
}

static bool check_options(Cli *cli, Error *err)
{
    static const char *const files[] = {"passwords", "accounts"};
    FileRights rights;
    Str ignored;
    const char *epochs = NULL;
    bool ok = init_check_sets(cli, err) && check_database(cli, err) &&
              init_epochs_choose(cli, &epochs, err) && rights_for(cli, "keys", &rights, err);
    if (args_has(&cli->args, "group") && args_has(&cli->args, "service-groups")) {
        return error_set(err, ERROR_USAGE, "--group and --service-groups: only one of them");
    }
    for (size_t i = 0; ok && i < sizeof files / sizeof *files; i++) {
        const char *path = args_flag(&cli->args, files[i]);
        ok = path == NULL || cli_read_file(cli, path, OPTION_FILE_MAX, &ignored, err);
    }
    return ok;
}

bool init_files(Cli *cli, Error *err)
{
    int folder = check_options(cli, err) ? open_folder(cli, err) : -1;
    if (folder < 0) {
        err->kind = ERROR_USAGE;
        return false;
    }
    sweep(folder);
    bool ok = put_epochs(cli, err) && put_passwords(cli, err) && put_master_key(cli, err) &&
              put_operator_key(cli, err) && put_erasure_key(cli, err) &&
              put_database_urls(cli, err) && put_confs(cli, err) && put_nats_accounts(cli, err);
    close(folder);
    return ok;
}
