// SPDX-License-Identifier: Apache-2.0
// archive list, show, orphans: what tables and bucket say.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/archive/archive_run.h"
#include "common/archive/database.h"
#include "services/cli/archive/archive.h"

enum { ROWS_MAX = 1000, FOUND_MAX = 16 * 1024 * 1024 };

// clang-format off
static const char list_sql[] =
    "SELECT u.id, u.state, to_char(u.state_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"'),"
    " coalesce((SELECT sum(c.rows) FROM archive.counts c WHERE c.unit = u.id), 0),"
    " coalesce((SELECT sum(o.bytes) FROM archive.objects o WHERE o.unit = u.id AND o.state IN ('written', 'verified')), 0),"
    " (SELECT count(*) FROM archive.objects o WHERE o.unit = u.id AND o.state IN ('written', 'verified')),"
    " coalesce(u.failure, ''), coalesce(to_char(r.until AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"'), ''),"
    " coalesce(archive.held(u.id), ''), coalesce(u.manifest_key, ''), coalesce(encode(u.manifest_hash, 'hex'), '')"
    " FROM archive.units u LEFT JOIN archive.restores r ON r.unit = u.id"
    " WHERE ($1::text IS NULL OR u.id = $1) ORDER BY u.starts_at, u.id";

static const char objects_sql[] =
    "SELECT o.key, k.parent, o.tenant, o.rows, o.bytes, o.tier, o.state,"
    " coalesce(to_char(o.verified_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"'), '')"
    " FROM archive.objects o JOIN archive.units u ON u.id = o.unit JOIN archive.kinds k ON k.kind = u.kind AND k.ordinal = o.ordinal"
    " WHERE o.unit = $1 AND o.state <> 'deleted' ORDER BY o.ordinal, o.tenant, o.kind DESC, o.part, o.key";
// clang-format on

// ---- list ----

static json_t *unit_json(const PGresult *rows, int i)
{
    return json_pack(
        "{s:s, s:s, s:s, s:I, s:I, s:I, s:s, s:s, s:s}", "unit", archive_text(rows, i, 0), "state",
        archive_text(rows, i, 1), "since", archive_text(rows, i, 2), "rows",
        (json_int_t)archive_number(rows, i, 3), "bytes", (json_int_t)archive_number(rows, i, 4),
        "objects", (json_int_t)archive_number(rows, i, 5), "failure", archive_text(rows, i, 6),
        "restored_until", archive_text(rows, i, 7), "hold", archive_text(rows, i, 8));
}

static void print_unit(const Cli *cli, const PGresult *rows, int i)
{
    printf(
        "%-36s  %-9s  %s  %12" PRId64 " rows  %9s\n", archive_text(rows, i, 0),
        archive_text(rows, i, 1), archive_text(rows, i, 2), archive_number(rows, i, 3),
        archive_size(cli, (uint64_t)archive_number(rows, i, 4)));
    static const char *const names[] = {"failed", "restored until", "kept by"};
    for (int k = 0; k < 3; k++) {
        if (archive_text(rows, i, 6 + k)[0] != '\0') {
            printf("    %s: %s\n", names[k], archive_text(rows, i, 6 + k));
        }
    }
}

static bool note_still(const Cli *cli, PGconn *pg, Error *err)
{
    AUTO(PGresult)
    rows = archive_ask(
        pg, "archive.installation",
        "SELECT coalesce(standing_still, ''), coalesce(clock_fault, '') FROM archive.installation",
        NULL, 0, err);
    if (rows != NULL && archive_text(rows, 0, 0)[0] != '\0') {
        cli_note(cli, "archiving stands still: %s", archive_text(rows, 0, 0));
    }
    if (rows != NULL && archive_text(rows, 0, 1)[0] != '\0') {
        cli_note(cli, "%s", archive_text(rows, 0, 1));
    }
    return rows != NULL;
}

static void print_list(const Cli *cli, const PGresult *rows)
{
    json_t *list = json_array();
    for (int i = 0; i < PQntuples(rows); i++) {
        if (cli->json) {
            json_array_append_new(list, unit_json(rows, i));
        } else {
            print_unit(cli, rows, i);
        }
    }
    if (cli->json) {
        print_json_line(json_incref(list));
    } else if (PQntuples(rows) == 0) {
        cli_note_empty(cli, "units: none is over yet, or stentor-archiver has not looked");
    }
    json_decref(list);
}

int cmd_archive_list(Cli *cli)
{
    Error err = {0};
    const char *params[] = {NULL};
    PGconn *pg = archive_command_open(cli, &err);
    AUTO(PGresult)
    rows = pg != NULL ? archive_ask(pg, "archive.units", list_sql, params, 1, &err) : NULL;
    bool ok = rows != NULL && note_still(cli, pg, &err);
    PQfinish(pg);
    if (!ok) {
        return cli_fail(cli, &err);
    }
    print_list(cli, rows);
    return EXIT_DONE;
}

// ---- show ----

static json_t *objects_json(const PGresult *rows)
{
    json_t *list = json_array();
    for (int i = 0; i < PQntuples(rows); i++) {
        json_array_append_new(
            list, json_pack(
                      "{s:s, s:s, s:s, s:I, s:I, s:s, s:s, s:s}", "key", archive_text(rows, i, 0),
                      "table", archive_text(rows, i, 1), "tenant", archive_text(rows, i, 2), "rows",
                      (json_int_t)archive_number(rows, i, 3), "bytes",
                      (json_int_t)archive_number(rows, i, 4), "tier", archive_text(rows, i, 5),
                      "state", archive_text(rows, i, 6), "verified_at", archive_text(rows, i, 7)));
    }
    return list;
}

static void print_show(const Cli *cli, const PGresult *unit, const PGresult *objects)
{
    if (cli->json) {
        json_t *root = unit_json(unit, 0);
        json_object_set_new(root, "manifest", json_string(archive_text(unit, 0, 9)));
        json_object_set_new(root, "manifest_sha256", json_string(archive_text(unit, 0, 10)));
        json_object_set_new(root, "list", objects_json(objects));
        print_json_line(root);
        return;
    }
    print_unit(cli, unit, 0);
    if (archive_text(unit, 0, 9)[0] != '\0') {
        printf("    manifest: %s\n", archive_text(unit, 0, 9));
    }
    for (int i = 0; i < PQntuples(objects); i++) {
        printf(
            "    %s  %" PRId64 " rows  %s  %s\n", archive_text(objects, i, 0),
            archive_number(objects, i, 3),
            archive_size(cli, (uint64_t)archive_number(objects, i, 4)),
            archive_text(objects, i, 6));
    }
}

static int show_rows(const Cli *cli, const PGresult *objects, int64_t most)
{
    Error err = {0};
    if (PQntuples(objects) == 0) {
        return cli_fail_as(cli, EXIT_FAILED, "the unit has no object yet");
    }
    bool ok = archive_print_rows(
        cli, archive_text(objects, 0, 0), (uint64_t)archive_number(objects, 0, 4), most, &err);
    return ok ? EXIT_DONE : cli_fail(cli, &err);
}

int cmd_archive_show(Cli *cli)
{
    Error err = {0};
    int64_t most = 0;
    const char *params[] = {args_word(&cli->args, 0)};
    PGconn *pg = args_int(&cli->args, "rows", 0, 1, ROWS_MAX, &most, &err)
                     ? archive_command_open(cli, &err)
                     : NULL;
    AUTO(PGresult)
    unit = pg != NULL ? archive_ask(pg, "archive.units", list_sql, params, 1, &err) : NULL;
    AUTO(PGresult)
    objects =
        unit != NULL ? archive_ask(pg, "archive.objects", objects_sql, params, 1, &err) : NULL;
    PQfinish(pg);
    if (objects == NULL) {
        return cli_fail(cli, &err);
    }
    if (PQntuples(unit) == 0) {
        return cli_fail_as(
            cli, EXIT_NOT_FOUND, "there is no unit '%s' (HINT: stentor archive list)", params[0]);
    }
    if (most > 0) {
        return show_rows(cli, objects, most);
    }
    print_show(cli, unit, objects);
    return EXIT_DONE;
}

// ---- orphans ----

static void print_orphans(const Cli *cli, const ArchiveOrphans *orphans, const Buf *found)
{
    json_t *list = json_array();
    Str rest = buf_view(found);
    Str line;
    while (str_split(&rest, '\n', &line)) {
        Str key = STR_EMPTY;
        int64_t bytes = 0;
        if (!str_split(&line, '\t', &key) || !str_to_i64(line, &bytes)) {
            continue;
        }
        if (cli->json) {
            json_array_append_new(
                list, json_pack(
                          "{s:o, s:I}", "key", json_stringn(key.ptr, key.len), "bytes",
                          (json_int_t)bytes));
        } else {
            printf(STR_FMT "  %s\n", STR_ARG(key), archive_size(cli, (uint64_t)bytes));
        }
    }
    if (cli->json) {
        print_json_line(json_incref(list));
    } else if (orphans->count == 0) {
        cli_note_empty(cli, "orphans");
    }
    json_decref(list);
}

static bool take_installation(Archive *archive, Error *err)
{
    AUTO(PGresult)
    rows = archive_ask(
        archive->pg, "archive.installation", "SELECT id FROM archive.installation", NULL, 0, err);
    if (rows != NULL) {
        (void)snprintf(
            archive->installation, sizeof archive->installation, "%s", archive_text(rows, 0, 0));
    }
    return rows != NULL;
}

static int list_orphans(Cli *cli)
{
    Error err = {0};
    Archive archive = {0};
    Buf found;
    ArchiveOrphans orphans = {.older_us = INT64_C(7) * 86400 * 1000000};
    ArchiveOptions options = {
        .database_url = cli->settings.database_url, .storage = cli->settings.storage};
    buf_init(&found, FOUND_MAX);
    bool ok = archive_span(cli, "older-than", &orphans.older_us, &err) &&
              cli_need(cli->settings.database_url, "STENTOR_DATABASE_URL", &err) &&
              cli_need(cli->settings.storage.url, "STENTOR_STORAGE_URL", &err) &&
              archive_open(&archive, &options, &err) && take_installation(&archive, &err) &&
              archive_orphans(&archive, &orphans, &found, &err);
    archive_close(&archive);
    if (ok) {
        print_orphans(cli, &orphans, &found);
    }
    buf_done(&found);
    return ok ? EXIT_DONE : cli_fail(cli, &err);
}

int cmd_archive_orphans(Cli *cli)
{
    return args_has(&cli->args, "delete") ? cmd_archive_delete_orphans(cli) : list_orphans(cli);
}
