// SPDX-License-Identifier: Apache-2.0
// migrate --check: does the database have what its migrations make? They run once more in a
// database of their own on the same server, and both catalogues are read by the same query, so that
// neither the version of Postgres nor the order of changes matters. Partitions that the programs
// make are left out.
#include <libpq-fe.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/db/errors.h"
#include "common/db/install/conninfo.h"
#include "common/db/migrate.h"
#include "services/cli/operate/migrate.h"

#define SCRATCH "check_of_stentor"

enum { KIND, NAME, DEFINITION, DEFINITION_SHOWN = 120 };

// clang-format off
// Rights in a fixed order: a restored database has them in another.
#define RIGHTS(acl) "coalesce((SELECT string_agg(a::text, ' ' ORDER BY a::text) FROM unnest(" acl ") AS a), 'default')"

static const char CATALOGUE[] =
    "WITH s AS MATERIALIZED (SELECT oid, nspname, nspowner, nspacl FROM pg_namespace WHERE nspname = ANY ($1::text[])),"
    " r AS MATERIALIZED (SELECT c.*, format('%I.%I', s.nspname, c.relname) AS name FROM pg_class AS c JOIN s ON s.oid = c.relnamespace"
    "  WHERE NOT c.relispartition OR c.relkind IN ('p', 'I')),"
    " found (kind, name, definition) AS ("
    " SELECT 'schema', nspname::text, format('owner %s, rights %s', nspowner::regrole, " RIGHTS("nspacl") ") FROM s"
    " UNION ALL SELECT CASE relkind WHEN 'v' THEN 'view' WHEN 'S' THEN 'sequence' ELSE 'table' END, name,"
    "  format('%s%s owner %s, rights %s, row security %s/%s, options %s %s', relkind, relpersistence, relowner::regrole,"
    "  " RIGHTS("relacl") ", relrowsecurity, relforcerowsecurity, reloptions, pg_get_partkeydef(oid))"
    "  FROM r WHERE relkind IN ('r', 'p', 'v', 'm', 'S')"
    " UNION ALL SELECT 'view', name || ' query', pg_get_viewdef(oid) FROM r WHERE relkind IN ('v', 'm')"
    " UNION ALL SELECT 'column', format('%s.%I', r.name, a.attname), format('%s%s%s%s%s%s, rights %s, storage %s',"
    "  format_type(a.atttypid, a.atttypmod), (SELECT ' collate ' || c.collname FROM pg_collation AS c WHERE c.oid = a.attcollation),"
    "  CASE WHEN a.attnotnull THEN ' not null' END, ' default ' || pg_get_expr(d.adbin, d.adrelid),"
    "  ' identity ' || nullif(a.attidentity::text, ''), ' generated ' || nullif(a.attgenerated::text, ''), " RIGHTS("a.attacl") ", a.attstorage)"
    "  FROM r JOIN pg_attribute AS a ON a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped"
    "  LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum WHERE r.relkind IN ('r', 'p', 'v', 'm')"
    " UNION ALL SELECT 'constraint', format('%s.%I', r.name, c.conname), pg_get_constraintdef(c.oid)"
    "  FROM r JOIN pg_constraint AS c ON c.conrelid = r.oid WHERE c.conparentid = 0"
    " UNION ALL SELECT 'index', name, pg_get_indexdef(oid) FROM r WHERE relkind IN ('i', 'I')"
    " UNION ALL SELECT 'trigger', format('%s.%I', r.name, t.tgname), pg_get_triggerdef(t.oid) || ' ' || t.tgenabled::text"
    "  FROM r JOIN pg_trigger AS t ON t.tgrelid = r.oid WHERE NOT t.tgisinternal AND t.tgparentid = 0"
    " UNION ALL SELECT 'policy', format('%s.%I', r.name, p.polname), format('%s %s %s using %s check %s', p.polcmd, p.polpermissive,"
    "  (SELECT string_agg(CASE o WHEN 0 THEN 'public' ELSE o::regrole::text END, ' ' ORDER BY o::regrole::text) FROM unnest(p.polroles) AS o),"
    "  pg_get_expr(p.polqual, p.polrelid), pg_get_expr(p.polwithcheck, p.polrelid)) FROM r JOIN pg_policy AS p ON p.polrelid = r.oid"
    " UNION ALL SELECT 'function', p.oid::regprocedure::text, format('owner %s, rights %s, %s', p.proowner::regrole, " RIGHTS("p.proacl") ","
    "  pg_get_functiondef(p.oid)) FROM pg_proc AS p JOIN s ON s.oid = p.pronamespace WHERE p.prokind IN ('f', 'p')"
    " UNION ALL SELECT 'type', format('%I.%I', s.nspname, t.typname), format('%s %s %s', t.typtype, format_type(t.typbasetype, t.typtypmod),"
    "  (SELECT string_agg(e.enumlabel, ' ' ORDER BY e.enumsortorder) FROM pg_enum AS e WHERE e.enumtypid = t.oid))"
    "  FROM pg_type AS t JOIN s ON s.oid = t.typnamespace WHERE t.typtype IN ('d', 'e')"
    " UNION ALL SELECT 'migration', format('%s/%s %s', schema, lpad(number::text, 4, '0'), slug), checksum FROM stentor.migrations"
    "  WHERE schema = ANY ($1::text[]))"
    " SELECT kind, name, definition FROM found ORDER BY kind COLLATE \"C\", name COLLATE \"C\", definition COLLATE \"C\"";
// clang-format on

// ---- reading ----

static PGconn *open_database(const char *url, Error *err)
{
    PGconn *pg = PQconnectdb(url);
    PGresult *res = NULL;
    bool ok = PQstatus(pg) == CONNECTION_OK || db_error_connection(pg, "Postgres", err);
    if (ok) {
        // Names are printed with their schemas; what the owner of a table may see is enough.
        res = PQexec(
            pg, "SET search_path = pg_catalog, pg_temp; SET statement_timeout = '60s';"
                " SET client_min_messages = warning");
        ok =
            PQresultStatus(res) == PGRES_COMMAND_OK || db_error_result(res, "migrate --check", err);
    }
    PQclear(res);
    if (!ok) {
        PQfinish(pg);
        return NULL;
    }
    return pg;
}

static bool run_sql(PGconn *pg, const char *sql, Error *err)
{
    PGresult *res = PQexec(pg, sql);
    ExecStatusType status = PQresultStatus(res);
    bool ok = status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK ||
              db_error_result(res, "migrate --check", err);
    PQclear(res);
    return ok;
}

static PGresult *read_catalogue(Cli *cli, PGconn *pg, Error *err)
{
    Buf schemas;
    buf_init(&schemas, 1024);
    for (int i = 0; migrate_schemas[i] != NULL; i++) {
        buf_printf(&schemas, "%s%s", i == 0 ? "{" : ",", migrate_schemas[i]);
    }
    buf_char(&schemas, '}');
    const char *params[] = {arena_cstr(cli->arena, buf_view(&schemas))};
    buf_done(&schemas);
    PGresult *res = PQexecParams(pg, CATALOGUE, 1, NULL, params, NULL, NULL, 0);
    if (PQresultStatus(res) != PGRES_TUPLES_OK) {
        (void)db_error_result(res, "migrate --check", err);
        PQclear(res);
        return NULL;
    }
    return res;
}

// ---- the database of the check ----

// As a superuser: it is made, given to the owner of the schemas, and dropped again. One that a
// killed check left behind is dropped by the next. The lock keeps two checks of a server apart: it
// is of one database, so both take it in `postgres`.
static PGresult *read_wanted(Cli *cli, const char *superuser, Error *err)
{
    ConninfoPart parts[] = {{"dbname", SCRATCH}, {NULL, NULL}};
    ConninfoPart maintenance[] = {{"dbname", "postgres"}, {NULL, NULL}};
    const char *url = conninfo_with(cli->arena, superuser, parts, err);
    const char *own = url != NULL ? conninfo_with(cli->arena, superuser, maintenance, err) : NULL;
    PGconn *pg = own != NULL ? open_database(own, err) : NULL;
    PGresult *wanted = NULL;
    MigrateReport report = {0};
    MigrateJob job = {
        .url = url,
        .folder = arena_printf(cli->arena, "%s/migrations", cli_home(cli)),
        .schemas = migrate_schemas,
        .role = MIGRATE_OWNER};
    bool ok =
        pg != NULL &&
        run_sql(pg, "SELECT pg_advisory_lock(hashtextextended('" SCRATCH "', 0))", err) &&
        run_sql(pg, "DROP DATABASE IF EXISTS " SCRATCH " WITH (FORCE)", err) &&
        run_sql(pg, "CREATE DATABASE " SCRATCH " OWNER " MIGRATE_OWNER " TEMPLATE template0", err);
    if (ok && db_migrate(&job, &report, err)) {
        PGconn *scratch = open_database(url, err);
        wanted = scratch != NULL ? read_catalogue(cli, scratch, err) : NULL;
        PQfinish(scratch);
    }
    if (ok) {
        (void)run_sql(pg, "DROP DATABASE IF EXISTS " SCRATCH " WITH (FORCE)", NULL);
    }
    PQfinish(pg);
    return wanted;
}

// ---- comparing ----

static int order_of(const PGresult *wanted, int w, const PGresult *found, int f)
{
    if (w == PQntuples(wanted) || f == PQntuples(found)) {
        return w == PQntuples(wanted) ? (f == PQntuples(found) ? 0 : 1) : -1;
    }
    int kind = strcmp(PQgetvalue(wanted, w, KIND), PQgetvalue(found, f, KIND));
    return kind != 0 ? kind : strcmp(PQgetvalue(wanted, w, NAME), PQgetvalue(found, f, NAME));
}

static void report_difference(Cli *cli, const PGresult *of, int row, const char *what)
{
    cli_step(
        cli,
        arena_printf(cli->arena, "%s %s", PQgetvalue(of, row, KIND), PQgetvalue(of, row, NAME)),
        what);
}

static const char *how_it_differs(Cli *cli, const char *found, const char *wanted)
{
    bool is_short = strlen(found) <= DEFINITION_SHOWN && strlen(wanted) <= DEFINITION_SHOWN;
    return is_short ? arena_printf(cli->arena, "is '%s', should be '%s'", found, wanted)
                    : "differs from what the migrations make";
}

static int compare(Cli *cli, const PGresult *wanted, const PGresult *found)
{
    int differences = 0;
    int w = 0;
    int f = 0;
    while (w < PQntuples(wanted) || f < PQntuples(found)) {
        int order = order_of(wanted, w, found, f);
        const char *what = order < 0 ? "is missing" : "is not of the migrations";
        if (order == 0) {
            const char *is = PQgetvalue(found, f, DEFINITION);
            const char *should = PQgetvalue(wanted, w, DEFINITION);
            what = strcmp(is, should) == 0 ? NULL : how_it_differs(cli, is, should);
        }
        if (what != NULL) {
            report_difference(cli, order < 0 ? wanted : found, order < 0 ? w : f, what);
            differences++;
        }
        w += order <= 0;
        f += order >= 0;
    }
    return differences;
}

int migrate_check(Cli *cli)
{
    Error err = {0};
    const char *url = cli->settings.database_url;
    const char *superuser = cli->settings.superuser_url;
    if (!cli_need(url, "STENTOR_DATABASE_URL", &err)) {
        return cli_fail(cli, &err);
    }
    PGconn *pg = open_database(url, &err);
    PGresult *found = pg != NULL ? read_catalogue(cli, pg, &err) : NULL;
    PGresult *wanted =
        found != NULL ? read_wanted(cli, superuser[0] != '\0' ? superuser : url, &err) : NULL;
    if (found != NULL && wanted == NULL && superuser[0] == '\0') {
        (void)error_wrap(
            &err, "the check needs a database of its own (HINT: STENTOR_SUPERUSER_URL)");
    }
    int differences = wanted != NULL ? compare(cli, wanted, found) : 0;
    if (wanted != NULL && differences == 0) {
        cli_step(
            cli, "database",
            arena_printf(
                cli->arena, "%d objects are as the migrations make them", PQntuples(found)));
    }
    bool ok = wanted != NULL;
    PQclear(wanted);
    PQclear(found);
    PQfinish(pg);
    return !ok ? cli_fail(cli, &err) : differences > 0 ? EXIT_FAILED : EXIT_DONE;
}
