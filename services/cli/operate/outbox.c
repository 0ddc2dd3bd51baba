// SPDX-License-Identifier: Apache-2.0
// outbox install, check: Stentor's tables next to the application's own, and whether a mapping
// fits.
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "common/db/migrate.h"
#include "common/outbox/sql/sql_text.h"
#include "services/cli/operate/outbox_database.h"

// ---- install ----

static void say(const Cli *cli, const char *what, const char *result)
{
    if (cli->json) {
        json_t *line = json_pack("{s:s, s:s}", "step", what, "result", result);
        print_json_line(line);
    } else {
        printf("%-40s %s\n", what, result);
    }
}

static void on_applied(void *ctx, const char *schema, const char *file)
{
    Cli *cli = ctx;
    say(cli, arena_printf(cli->arena, "migration %s/%s", schema, file), "applied");
}

static bool migrate(Outbox *outbox, Error *err)
{
    static const char *const schemas[] = {"stentor_outbox", NULL};
    Cli *cli = outbox->cli;
    MigrateReport report = {0};
    MigrateJob job = {
        .url = cli->settings.database_url,
        .folder = arena_printf(cli->arena, "%s/migrations", cli_home(cli)),
        .schemas = schemas,
        .superuser_may = true, // outbox_open has asked
        .rights_hint = "connect as the owner of the mapped table",
        .on_applied = on_applied,
        .ctx = cli};
    if (!db_migrate(&job, &report, err)) {
        return false;
    }
    say(cli, "schema stentor_outbox",
        arena_printf(cli->arena, "%d applied, %d were there", report.applied, report.present));
    return true;
}

static const char *state_tables(const Outbox *outbox)
{
    const char *text = "";
    for (int i = 0; i < outbox->mapping->state_count; i++) {
        text = arena_printf(
            outbox->cli->arena, "%s, %s", text,
            sql_table(outbox->cli->arena, outbox->mapping->states[i].table));
    }
    return text;
}

// What a relay does and no more: reads and updates the mapped tables, deletes what is kept long
// enough.
static bool grant(Outbox *outbox, Error *err)
{
    const char *role = args_flag(&outbox->cli->args, "role");
    Arena *arena = outbox->cli->arena;
    if (role == NULL) {
        return true;
    }
    const char *name = sql_name(arena, str_from(role));
    const char *table = sql_table(arena, outbox->mapping->table);
    Str whole = outbox->mapping->table;
    ptrdiff_t dot = str_find(whole, '.');
    Str schema = dot < 0 ? STR("public") : str_slice(whole, 0, (size_t)dot);
    const char *sql = arena_printf(
        arena,
        "GRANT USAGE ON SCHEMA stentor_outbox, %s TO %s;"
        "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA stentor_outbox TO %s;"
        "GRANT SELECT, UPDATE%s ON %s TO %s;",
        sql_name(arena, schema), name, name, outbox->mapping->keep_count > 0 ? ", DELETE" : "",
        table, name);
    if (outbox->mapping->state_count > 0) {
        sql = arena_printf(
            arena, "%sGRANT SELECT, UPDATE ON %s TO %s", sql, state_tables(outbox) + 2, name);
    }
    if (!outbox_exec(outbox, "grant", sql, err)) {
        return false;
    }
    say(outbox->cli, arena_printf(arena, "role %s", role), "may relay");
    return true;
}

static bool add_trigger(Outbox *outbox, Error *err)
{
    Arena *arena = outbox->cli->arena;
    if (!args_has(&outbox->cli->args, "wake")) {
        return true;
    }
    const char *name =
        arena_printf(arena, "stentor_outbox_wake_%.*s", STR_ARG(outbox->mapping->name));
    const char *sql = arena_printf(
        arena,
        "CREATE OR REPLACE TRIGGER %s AFTER INSERT ON %s FOR EACH STATEMENT"
        " EXECUTE FUNCTION stentor_outbox.wake(%s)",
        sql_name(arena, str_from(name)), sql_table(arena, outbox->mapping->table),
        sql_literal(arena, outbox->mapping->name));
    if (!outbox_exec(outbox, "trigger", sql, err)) {
        return false;
    }
    say(outbox->cli, arena_printf(arena, "trigger %s", name), "one NOTIFY per INSERT statement");
    return true;
}

int cmd_outbox_install(Cli *cli)
{
    Error err = {0};
    Outbox outbox;
    bool ok = outbox_open(&outbox, cli, &err) && migrate(&outbox, &err) && grant(&outbox, &err) &&
              add_trigger(&outbox, &err);
    outbox_close(&outbox);
    return ok ? EXIT_DONE : cli_fail(cli, &err);
}

// ---- check ----

// NULL: an index serves the claim's walk.
static const char *missing_index(Outbox *outbox, Error *err)
{
    static const char SETTINGS[] =
        "SET enable_seqscan = off; SET enable_bitmapscan = off; SET jit = off";
    if (!outbox_exec(outbox, "settings", SETTINGS, err)) {
        return NULL;
    }
    const char *sql =
        arena_printf(outbox->cli->arena, "EXPLAIN (FORMAT JSON) %s", outbox->sql->scan);
    PGresult *res = outbox_query(outbox, "pending rows", sql, 0, NULL, err);
    // Whether the plan has a node that reads everything.
    const char *plan = res != NULL ? arena_cstr(outbox->cli->arena, db_get_text(res, 0, 0)) : "";
    bool missing = strstr(plan, "\"Seq Scan\"") != NULL || strstr(plan, "\"Sort\"") != NULL;
    PQclear(res);
    return missing ? outbox->sql->index_hint : NULL;
}

// A value that its column does not take (no such value of an enumeration) would be refused at each
// row. Empty: Postgres takes all that the moment writes.
static Str unwritable(Outbox *outbox, MappingMoment moment)
{
    Arena *arena = outbox->cli->arena;
    Error err = {0};
    const char *sql = arena_printf(
        arena, "EXPLAIN UPDATE %s AS t SET %s WHERE false",
        sql_table(arena, outbox->mapping->table),
        sql_assigns(outbox->sql, &outbox->mapping->moments[moment], &(SqlValues){0}));
    const char *what = arena_printf(arena, "moments.%s", moment_name(moment));
    return outbox->mapping->moments[moment].count == 0 || outbox_exec(outbox, what, sql, &err)
               ? STR_EMPTY
               : arena_str(arena, str_from(err.text));
}

static Str *find_unwritable(Outbox *outbox, size_t *ret_count)
{
    Str *problems = arena_array(outbox->cli->arena, MOMENT_COUNT, sizeof *problems);
    for (int i = 0; i < MOMENT_COUNT; i++) {
        problems[*ret_count] = unwritable(outbox, (MappingMoment)i);
        *ret_count += problems[*ret_count].len > 0 ? 1 : 0;
    }
    return problems;
}

static void print_check(const Outbox *outbox, const Str *problems, size_t count, const char *index)
{
    Str name = outbox->mapping->name;
    if (outbox->cli->json) {
        json_t *list = json_array();
        for (size_t i = 0; i < count; i++) {
            json_array_append_new(list, json_stringn(problems[i].ptr, problems[i].len));
        }
        json_t *out = json_pack(
            "{s:o, s:b, s:o, s:s?}", "mapping", json_stringn(name.ptr, name.len), "fits",
            count == 0, "problems", list, "missing_index", index);
        print_json_line(out);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        printf(STR_FMT "\n", STR_ARG(problems[i]));
    }
    if (index != NULL) {
        printf("no index serves the walk through pending rows (HINT: %s)\n", index);
    }
    if (count == 0) {
        printf(
            "mapping '" STR_FMT "' fits table '" STR_FMT "'\n", STR_ARG(name),
            STR_ARG(outbox->mapping->table));
    }
}

static bool check(Outbox *outbox, size_t *ret_count, Error *err)
{
    PGresult *answer = outbox_query(outbox, "check", outbox->sql->check.sql, 0, NULL, err);
    if (answer == NULL) {
        return false;
    }
    Str *problems = NULL;
    const char *index = NULL;
    *ret_count = relay_sql_problems(outbox->sql, answer, outbox->cli->arena, &problems);
    if (*ret_count == 0 && relay_sql_bind(outbox->sql, answer, err)) {
        problems = find_unwritable(outbox, ret_count);
        index = *ret_count == 0 ? missing_index(outbox, err) : NULL;
    }
    PQclear(answer);
    if (err->kind != ERROR_NONE) {
        return false;
    }
    print_check(outbox, problems, *ret_count, index);
    return true;
}

int cmd_outbox_check(Cli *cli)
{
    Error err = {0};
    Outbox outbox;
    size_t problems = 0;
    bool ok = outbox_open(&outbox, cli, &err) && outbox_become(&outbox, &err) &&
              check(&outbox, &problems, &err);
    outbox_close(&outbox);
    if (!ok) {
        return cli_fail(cli, &err);
    }
    return problems == 0 ? EXIT_DONE : EXIT_FAILED;
}
