// SPDX-License-Identifier: Apache-2.0
// migrate, nats-config, master-key: what an installer needs.
#include <string.h>

#include "common/base/buf.h"
#include "common/bus/admin.h"
#include "common/bus/topology.h"
#include "common/codec/seal.h"
#include "common/db/migrate.h"
#include "services/cli/session.h"

#define RIGHTS_HINT                                                                                \
    "connect as " MIGRATE_OWNER "; first, once, as a superuser: stentor migrate --bootstrap"

static void print_step(const Cli *cli, const char *what, const char *result)
{
    if (cli->json) {
        Buf line;
        buf_init(&line, 4096);
        buf_cstr(&line, "{\"what\":");
        buf_json(&line, str_from(what));
        buf_cstr(&line, ",\"result\":");
        buf_json(&line, str_from(result));
        buf_cstr(&line, "}\n");
        fputs(buf_c(&line), stdout);
        buf_done(&line);
    } else {
        printf("%-40s %s\n", what, result);
    }
}

static void on_migration_applied(void *ctx, const char *schema, const char *file)
{
    Cli *cli = ctx;
    print_step(cli, arena_printf(cli->arena, "migration %s/%s", schema, file), "applied");
}

static bool migrate_database(Cli *cli, Error *err)
{
    if (!cli_need(cli->settings.database_url, "STENTOR_DATABASE_URL", err)) {
        return false;
    }
    MigrateReport report = {0};
    MigrateJob job = {
        .url = cli->settings.database_url,
        .folder = arena_printf(cli->arena, "%s/migrations", cli->settings.home),
        .schemas = migrate_schemas,
        .rights_hint = RIGHTS_HINT,
        .on_applied = on_migration_applied,
        .ctx = cli};
    if (args_has(&cli->args, "bootstrap")) {
        if (!db_bootstrap(job.url, job.folder, err)) {
            return false;
        }
        print_step(cli, "bootstrap", "roles, rights and owner are there");
        job.role = MIGRATE_OWNER;
    }
    if (!db_migrate(&job, &report, err)) {
        return false;
    }
    print_step(
        cli, "database",
        arena_printf(cli->arena, "%d applied, %d were there", report.applied, report.present));
    return true;
}

typedef struct Apply {
    Cli *cli;
    Session *session;
} Apply;

static void on_topology_step(void *ctx, const char *what, const char *result)
{
    Apply *apply = ctx;
    print_step(apply->cli, what, result);
}

static void on_topology_done(void *ctx, const Error *err)
{
    Apply *apply = ctx;
    session_finish(apply->session, err);
}

static bool migrate_nats(Cli *cli, Error *err)
{
    int64_t replicas = 0, percent = 0, ack_wait_ms = 0;
    if (!args_int(&cli->args, "replicas", 1, 1, 5, &replicas, err) ||
        !args_int(&cli->args, "bytes-scale-percent", 100, 1, 100000, &percent, err) ||
        !args_int(&cli->args, "ack-wait-ms", 0, 500, 600000, &ack_wait_ms, err)) {
        return false;
    }
    Session session;
    if (!session_open(&session, cli, err)) {
        return false;
    }
    TopologyOptions options = {
        .replicas = (int)replicas,
        .bytes_scale = (double)percent / 100,
        .ack_wait_ms = (int)ack_wait_ms};
    Apply apply = {.cli = cli, .session = &session};
    topology_apply(session.bus, &options, on_topology_step, on_topology_done, &apply);
    bool ok = session_run(&session, 60000, err);
    session_close(&session);
    return ok;
}

int cmd_migrate(Cli *cli)
{
    Error err = {0};
    if (!args_has(&cli->args, "skip-database") && !migrate_database(cli, &err)) {
        return cli_fail(&err);
    }
    if (!args_has(&cli->args, "skip-nats") && !migrate_nats(cli, &err)) {
        return cli_fail(&err);
    }
    return EXIT_DONE;
}

typedef struct Passwords {
    Str text; // lines of user=password
    Arena *arena;
    const char *missing;
} Passwords;

static const char *find_password(void *ctx, const char *service)
{
    Passwords *passwords = ctx;
    Str rest = passwords->text;
    Str line;
    while (str_split(&rest, '\n', &line)) {
        ptrdiff_t equals = str_find(line, '=');
        if (equals > 0 && str_eq(str_slice(line, 0, (size_t)equals), str_from(service))) {
            return arena_cstr(
                passwords->arena, str_trim(str_slice(line, (size_t)equals + 1, line.len)));
        }
    }
    passwords->missing = service;
    return "";
}

int cmd_nats_config(Cli *cli)
{
    Error err = {0};
    const char *path = args_flag(&cli->args, "passwords");
    Passwords passwords = {.arena = cli->arena};
    if (path == NULL) {
        error_set(
            &err, ERROR_CONFIG,
            "--passwords FILE is required: a line 'user=password' for each service");
        return cli_fail(&err);
    }
    if (!cli_read_file(cli, path, 64 * 1024, &passwords.text, &err)) {
        return cli_fail(&err);
    }
    Buf out;
    buf_init(&out, 1024 * 1024);
    bool ok = topology_nats_config(&out, find_password, &passwords);
    if (!ok || passwords.missing != NULL) {
        error_set(
            &err, ERROR_CONFIG, "'%s' has no password for '%s'", path,
            passwords.missing != NULL ? passwords.missing : "?");
        buf_done(&out);
        return cli_fail(&err);
    }
    fwrite(out.ptr, 1, out.len, stdout);
    buf_done(&out);
    return EXIT_DONE;
}

int cmd_master_key(Cli *cli)
{
    (void)cli;
    char text[132];
    master_key_generate(text);
    fputs(text, stdout);
    return EXIT_DONE;
}
