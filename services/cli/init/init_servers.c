// SPDX-License-Identifier: Apache-2.0
// init servers: Postgres and NATS are brought to what the folder says. In this order: both answer;
// database, roles and passwords, as the superuser; what `migrate` does, as stentor_owner and
// stentor-admin; the operator's key. Each step looks first, so that a second run changes nothing.
#include <libpq-fe.h>
#include <string.h>
#include <time.h>

#include "common/api/api_key.h"
#include "common/base/clock.h"
#include "common/base/crash.h"
#include "common/bus/topology/topology.h"
#include "common/db/errors.h"
#include "common/db/install/conninfo.h"
#include "common/db/install/roles.h"
#include "common/db/migrate.h"
#include "common/session/config_get.h"
#include "common/session/config_put.h"
#include "services/cli/init/init.h"
#include "services/cli/noted.h"
#include "services/cli/operate/migrate.h"

enum { TRY_EVERY_MS = 500 };

// ---- settings ----

// The folder's admin.conf under the environment, in the place of what the command began with.
static bool load_admin(Cli *cli, Error *err)
{
    static char program[] = "stentor", flag[] = "--config";
    int rest = 0;
    Settings fresh = {0};
    char *words[] = {
        program, flag, arena_printf(cli->arena, "%s", init_path(cli, "admin.conf")), NULL};
    if (!options_load_args(
            cli->table->settings, cli->table->setting_count, &fresh, 3, words, &rest, NULL, err)) {
        return false;
    }
    options_free(cli->table->settings, cli->table->setting_count, &cli->settings);
    cli->settings = fresh;
    return cli_need(fresh.database_url, "STENTOR_DATABASE_URL", err);
}

// Where the superuser enters before there is a database of ours.
static const char *superuser_url(Cli *cli, const char *database, Error *err)
{
    const char *url = cli->settings.superuser_url;
    bool given = url[0] != '\0';
    if (!given) {
        url = init_text(cli, "superuser.database-url", err);
    }
    if (url == NULL) {
        return NULL;
    }
    const char *own = given ? conninfo_get(cli->arena, url, "dbname") : NULL;
    const char *enters = database != NULL ? database : own != NULL ? own : "postgres";
    return conninfo_with(
        cli->arena, url,
        (ConninfoPart[]){{"dbname", enters}, {"application_name", "stentor-init"}, {NULL, NULL}},
        err);
}

// ---- waiting ----

static int64_t now_ms(void)
{
    return clock_now_us() / 1000;
}

static PGconn *try_postgres(const char *url, Error *err)
{
    const char *keywords[] = {"connect_timeout", "dbname", NULL};
    const char *values[] = {"5", url, NULL};
    PGconn *pg = PQconnectdbParams(keywords, values, 1);
    if (PQstatus(pg) == CONNECTION_OK) {
        return pg;
    }
    (void)db_error_connection(pg, "Postgres", err);
    PQfinish(pg);
    return NULL;
}

// What is wrong is said when it is first met and when it becomes something else. false: it is too
// late.
static bool wait_on(const Cli *cli, Error *said, const Error *now, int64_t until_ms)
{
    if (strcmp(said->text, now->text) != 0) {
        cli_note(cli, "waiting: %s", now->text);
        *said = *now;
    }
    if (now_ms() >= until_ms) {
        return false;
    }
    nanosleep(&(struct timespec){.tv_nsec = TRY_EVERY_MS * 1000000L}, NULL);
    return true;
}

static bool give_up(const Error *last, Error *err)
{
    return error_set(
        err, ERROR_TRANSIENT,
        "%s (HINT: tried until --timeout was over; run the command again once this is fixed)",
        last->text);
}

static PGconn *wait_for_postgres(const Cli *cli, const char *url, int64_t until_ms, Error *err)
{
    Error said = {0}, now = {0};
    PGconn *pg = try_postgres(url, &now);
    while (pg == NULL && wait_on(cli, &said, &now, until_ms)) {
        pg = try_postgres(url, &now);
    }
    if (pg == NULL) {
        (void)give_up(&now, err);
    }
    return pg;
}

static bool wait_for_nats(Cli *cli, int64_t until_ms, Error *err)
{
    Error said = {0}, now = {0};
    Session session;
    bool open = session_open(&session, &cli->settings.session, &now);
    while (!open && wait_on(cli, &said, &now, until_ms)) {
        open = session_open(&session, &cli->settings.session, &now);
    }
    if (!open) {
        return give_up(&now, err);
    }
    session_close(&session);
    return true;
}

// ---- roles ----

static bool set_password(Cli *cli, PGconn *pg, const char *name, Error *err)
{
    const char *role = init_role(cli, name);
    const char *file = arena_printf(cli->arena, "%s.password", name);
    const char *password = init_text(cli, file, err);
    RolePassword done = ROLE_PASSWORD_PRESENT;
    if (password == NULL) {
        return false;
    }
    if (!db_role_password(
            pg, role, password, args_has(&cli->args, "reset-passwords"), &done, err)) {
        return err->kind == ERROR_CONFLICT
                   ? error_set(
                         err, ERROR_CONFLICT,
                         "the role '%s' has another password than '%s' (HINT: put the role's "
                         "password into that file; or --reset-passwords, which shuts out programs "
                         "that use the old one)",
                         role, init_path(cli, file))
                   : false;
    }
    if (done == ROLE_PASSWORD_SET) {
        CRASH_POINT("init.password_set");
    }
    cli_step(
        cli, arena_printf(cli->arena, "password of %s", role),
        done == ROLE_PASSWORD_SET ? "set" : "present");
    return true;
}

static bool set_passwords(Cli *cli, PGconn *pg, Error *err)
{
    size_t count = 0;
    const InitService *services = init_services(&count);
    bool ok = set_password(cli, pg, "owner", err) && set_password(cli, pg, "cli", err);
    for (size_t i = 0; ok && i < count; i++) {
        ok = !services[i].wants_database || set_password(cli, pg, services[i].name, err);
    }
    return ok;
}

static bool make_roles(Cli *cli, PGconn *pg, Error *err)
{
    bool made = false;
    const char *database = conninfo_get(cli->arena, cli->settings.database_url, "dbname");
    if (database == NULL) {
        return error_set(
            err, ERROR_CONFIG,
            "'%s' names no database (HINT: stentor init files --renew --database "
            "'host=HOST dbname=stentor')",
            init_path(cli, "owner.database-url"));
    }
    if (!db_make_database(pg, database, &made, err)) {
        return false;
    }
    if (made) {
        CRASH_POINT("init.database_made");
    }
    cli_step(cli, arena_printf(cli->arena, "database %s", database), made ? "created" : "present");
    const char *url = superuser_url(cli, database, err);
    if (url == NULL ||
        !db_bootstrap(url, arena_printf(cli->arena, "%s/migrations", cli_home(cli)), err)) {
        return false;
    }
    cli_step(cli, "bootstrap", "roles, rights and owner are set up");
    return set_passwords(cli, pg, err);
}

static bool prepare_postgres(Cli *cli, int64_t until_ms, Error *err)
{
    bool as_owner = args_has(&cli->args, "skip-roles");
    const char *url = as_owner ? cli->settings.database_url : superuser_url(cli, NULL, err);
    PGconn *pg = url != NULL ? wait_for_postgres(cli, url, until_ms, err) : NULL;
    bool ok = pg != NULL && (as_owner || make_roles(cli, pg, err));
    PQfinish(pg);
    return ok;
}

// ---- the operator's key ----

// An entry that is there stays, whatever it says: a key that was revoked is not brought back.
static bool register_key(Cli *cli, Session *session, Stentor__V1__ApiKey *key, Error *err)
{
    char subject[SUBJECT_SIZE];
    Str there = STR_EMPTY;
    uint64_t sequence = 0;
    ConfigEntry entry = {"apikey", str_from(key->tenant), str_from(key->key_id), &key->base, 0};
    subject_config(subject, entry.kind, entry.tenant, entry.key);
    if (!config_get(session, cli->arena, subject, &there, &sequence, err)) {
        return false;
    }
    bool made = there.len == 0;
    if (made && (!cli_audit_write(cli, session, "api_key.bootstrapped", key->key_id, err) ||
                 !config_put(session, cli->arena, &entry, err))) {
        return false;
    }
    if (made) {
        CRASH_POINT("init.key_stored");
    }
    cli_step(
        cli, arena_printf(cli->arena, "operator's key %s", key->key_id),
        made ? "registered" : "present");
    return true;
}

static bool register_operator_key(Cli *cli, Error *err)
{
    static char name[] = "init";
    Session session;
    Stentor__V1__ApiKey key;
    const char *whole = init_text(cli, "operator.key", err);
    stentor__v1__api_key__init(&key);
    if (whole == NULL) {
        return false;
    }
    if (!api_key_take(&key, str_from(whole), cli->arena)) {
        return error_set(
            err, ERROR_CONFIG, "'%s' is no API key (HINT: remove it and run init again)",
            init_path(cli, "operator.key"));
    }
    api_key_make_operator(&key, clock_now_us());
    key.name = name;
    if (!session_open(&session, &cli->settings.session, err)) {
        return false;
    }
    bool ok = register_key(cli, &session, &key, err);
    session_close(&session);
    return ok;
}

bool init_servers(Cli *cli, Error *err)
{
    int64_t timeout_s = 0;
    Str text = STR_EMPTY;
    Accounts accounts;
    if (!args_int(&cli->args, "timeout", 60, 0, 86400, &timeout_s, err) || !load_admin(cli, err) ||
        !init_accounts_text(cli, &text, err) || !accounts_read(text, cli->arena, &accounts, err)) {
        return false;
    }
    int64_t until_ms = now_ms() + timeout_s * 1000;
    return prepare_postgres(cli, until_ms, err) && wait_for_nats(cli, until_ms, err) &&
           migrate_all(cli, &accounts, err) && register_operator_key(cli, err);
}
