// SPDX-License-Identifier: Apache-2.0
// migrate, nats-config: what an installer needs.
#include <libpq-fe.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/bus/topology/admin.h"
#include "common/bus/topology/topology.h"
#include "common/db/errors.h"
#include "common/db/master_keys.h"
#include "common/db/migrate.h"
#include "common/session/key_file.h"
#include "services/cli/config/config_order.h"
#include "services/cli/erase/erase.h"
#include "services/cli/init/nats_hash.h"
#include "services/cli/operate/migrate.h"

#define RIGHTS_HINT                                                                                \
    "connect as " MIGRATE_OWNER "; first, once, as a superuser: stentor migrate --bootstrap"

static void on_migration_applied(void *ctx, const char *schema, const char *file)
{
    Cli *cli = ctx;
    cli_step(cli, arena_printf(cli->arena, "migration %s/%s", schema, file), "applied");
}

typedef struct Migrate {
    Cli *cli;
    const Accounts *accounts; // whose subscribers get their consumers
    MasterKey *master;        // NULL: no file was named
    KeyRegister keys;         // what is registered
    bool keys_read;           // from Postgres
} Migrate;

static bool fail_keys(const Migrate *m, const char *where, Error *err)
{
    return error_wrap(err, "%s: master key file '%s'", where, m->cli->settings.master_key_file);
}

static bool register_in_database(Migrate *m, Error *err)
{
    PGconn *pg = PQconnectdb(m->cli->settings.database_url);
    bool ok = PQstatus(pg) == CONNECTION_OK || db_error_connection(pg, "Postgres", err);
    if (ok && m->master != NULL) {
        ok = master_keys_learn(pg, m->master, &m->keys, err) || fail_keys(m, "Postgres", err);
    } else if (ok) {
        ok = master_keys_load(pg, &m->keys, err);
    }
    m->keys_read = ok;
    PQfinish(pg);
    return ok;
}

// CONFIG gets what Postgres has; without Postgres (--skip-database) it learns by itself.
static bool register_in_config(Migrate *m, Session *session, Error *err)
{
    KeyRegister there;
    if (!keys_fetch(session, m->cli->arena, &there, err)) {
        return false;
    }
    KeyRegister known = there;
    if (m->master != NULL && !key_register_learn(&known, m->master, err)) {
        return fail_keys(m, "CONFIG", err);
    }
    if (!m->keys_read) {
        m->keys = known;
    }
    return key_register_same(&there, &m->keys) ||
           keys_publish(session, m->cli->arena, &m->keys, err);
}

static bool migrate_database(Migrate *m, Error *err)
{
    Cli *cli = m->cli;
    if (!cli_need(cli->settings.database_url, "STENTOR_DATABASE_URL", err)) {
        return false;
    }
    MigrateReport report = {0};
    MigrateJob job = {
        .url = cli->settings.database_url,
        .folder = arena_printf(cli->arena, "%s/migrations", cli_home(cli)),
        .schemas = migrate_schemas,
        .rights_hint = RIGHTS_HINT,
        .on_applied = on_migration_applied,
        .ctx = cli};
    if (args_has(&cli->args, "bootstrap")) {
        if (!db_bootstrap(job.url, job.folder, err)) {
            return false;
        }
        cli_step(cli, "bootstrap", "roles, rights and owner are set up");
        job.role = MIGRATE_OWNER;
    }
    if (!db_migrate(&job, &report, err)) {
        return false;
    }
    cli_step(
        cli, "database",
        arena_printf(cli->arena, "%d applied, %d were there", report.applied, report.present));
    return register_in_database(m, err);
}

static bool read_accounts(Cli *cli, Accounts *ret, Error *err)
{
    Str text;
    const char *path = args_flag(&cli->args, "passwords");
    return cli_read_file(cli, path, 256 * 1024, &text, err) &&
           (accounts_read(text, cli->arena, ret, err) || error_wrap(err, "'%s'", path));
}

typedef struct Apply {
    Cli *cli;
    Session *session;
} Apply;

static void on_topology_step(void *ctx, const char *what, const char *result)
{
    Apply *apply = ctx;
    cli_step(apply->cli, what, result);
}

static void on_topology_done(void *ctx, const Error *err)
{
    Apply *apply = ctx;
    session_finish(apply->session, err);
}

static bool order_config(const Migrate *m, Session *session, Error *err)
{
    ConfigOrdered done;
    if (!config_order(session, m->cli->arena, &done, err)) {
        return false;
    }
    if (done.rewritten > 0 || done.forgotten > 0) {
        cli_step(
            m->cli, "entries of an earlier version",
            arena_printf(
                m->cli->arena,
                "%lld now name the entry that they replace, %lld earlier messages are deleted",
                (long long)done.rewritten, (long long)done.forgotten));
    }
    if (done.left > 0) {
        cli_step(
            m->cli, "entries of an earlier version",
            arena_printf(
                m->cli->arena,
                "%lld more were written meanwhile (HINT: stentor migrate, once the services run "
                "this version)",
                (long long)done.left));
    }
    return true;
}

static bool migrate_nats(Migrate *m, Error *err)
{
    int64_t replicas = 0, percent = 0, ack_wait_ms = 0;
    const Args *args = &m->cli->args;
    if (!args_int(args, "replicas", 0, 1, 5, &replicas, err) ||
        !args_int(args, "bytes-scale-percent", 0, 1, 100000, &percent, err) ||
        !args_int(args, "ack-wait-ms", 0, 500, 600000, &ack_wait_ms, err)) {
        return false;
    }
    Session session;
    if (!session_open(&session, &m->cli->settings.session, err)) {
        return false;
    }
    TopologyOptions options = {
        .accounts = m->accounts,
        .replicas = (int)replicas,
        .bytes_scale = (double)percent / 100,
        .ack_wait_ms = (int)ack_wait_ms};
    Apply apply = {.cli = m->cli, .session = &session};
    topology_apply(session.bus, &options, on_topology_step, on_topology_done, &apply);
    bool ok = session_run(&session, 60000, err) && register_in_config(m, &session, err) &&
              order_config(m, &session, err) &&
              (args_has(args, "skip-database") || erase_close_gate(m->cli, &session, err));
    session_close(&session);
    return ok;
}

static void print_keys(const Migrate *m)
{
    Buf text;
    buf_init(&text, 4096);
    for (size_t i = 0; i < m->keys.count; i++) {
        char id[KEY_ID_SIZE];
        key_id_print(m->keys.rows[i].info.check, id);
        buf_printf(
            &text, "%s%s %s", i > 0 ? ", " : "", key_kind_name(m->keys.rows[i].info.kind), id);
        buf_cstr(&text, m->keys.rows[i].retired ? " (retired)" : "");
    }
    if (m->keys.count == 0) {
        buf_cstr(
            &text, "none: services that need keys will not start (HINT: "
                   "STENTOR_MASTER_KEY_FILE=FILE stentor migrate)");
    }
    cli_step(m->cli, "registered keys", buf_c(&text));
    buf_done(&text);
}

bool migrate_all(Cli *cli, const Accounts *accounts, Error *err)
{
    Migrate m = {.cli = cli, .accounts = accounts};
    const char *path = cli->settings.master_key_file;
    bool names_file = path[0] != '\0';
    m.master = names_file ? keys_read_file(path, cli->arena, err) : NULL;
    bool ok = (!names_file || m.master != NULL) &&
              (args_has(&cli->args, "skip-database") || migrate_database(&m, err)) &&
              (args_has(&cli->args, "skip-nats") || migrate_nats(&m, err));
    master_key_free(m.master);
    if (ok) {
        print_keys(&m);
    }
    return ok;
}

int cmd_migrate(Cli *cli)
{
    Error err = {0};
    Accounts accounts = {0};
    if (args_has(&cli->args, "check")) {
        return migrate_check(cli);
    }
    bool ok = (!args_has(&cli->args, "passwords") || read_accounts(cli, &accounts, &err)) &&
              migrate_all(cli, &accounts, &err);
    return ok ? EXIT_DONE : cli_fail(cli, &err);
}

int cmd_nats_config(Cli *cli)
{
    Error err = {0};
    Accounts accounts;
    if (args_flag(&cli->args, "passwords") == NULL) {
        error_set(
            &err, ERROR_USAGE,
            "--passwords FILE is required: a line 'user=password' for each service, and the "
            "applications and subscribers");
        return cli_fail(cli, &err);
    }
    if (!read_accounts(cli, &accounts, &err)) {
        return cli_fail(cli, &err);
    }
    nats_hash_passwords(&accounts, cli->arena);
    Buf out;
    buf_init(&out, 64 * 1024 * 1024);
    bool ok = accounts_write(&out, &accounts);
    if (ok) {
        fwrite(out.ptr, 1, out.len, stdout);
    }
    buf_done(&out);
    if (!ok) {
        error_set(&err, ERROR_PERMANENT, "the configuration is longer than 64 MB");
        return cli_fail(cli, &err);
    }
    return EXIT_DONE;
}
