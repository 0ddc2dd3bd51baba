// SPDX-License-Identifier: Apache-2.0
#include "common/db/migrate.h"

#include <dirent.h>
#include <errno.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/arena.h"
#include "common/base/cleanup.h"
#include "common/base/crash.h"
#include "common/base/id.h"
#include "common/codec/hash.h"
#include "common/db/errors.h"

const char *const migrate_schemas[] = {
    "stentor", "keys",       "ingest", "dispatcher", "archive",  "archiver", "digest_flusher",
    "people",  "order_saga", "feed",   "erasure",    "webhooks", "gateway",  "find",
    NULL};

enum {
    FILE_MAX_BYTES = 4 * 1024 * 1024,
    FILES_MAX = 9999, // of one schema: the number has four digits
    NUMBER_DIGITS = 4,
    CHECKSUM_SIZE = 2 * SHA256_LEN + 1,
    PATH_SIZE = 1024,
    NAME_SIZE = 128,
};

#define INSUFFICIENT "42501" // insufficient_privilege

DEFINE_CLEANUP(free_arena, Arena *, arena_free)
DEFINE_CLEANUP(free_result, PGresult *, PQclear)
DEFINE_CLEANUP(close_file, FILE *, fclose)
DEFINE_CLEANUP(close_folder, DIR *, closedir)

typedef struct File {
    char name[NAME_SIZE]; // NNNN_slug.sql
    int number;
    Str slug;
} File;

typedef struct Run {
    PGconn *pg;
    const char *folder;
    const char *schema;
    Arena *arena; // of one schema
    File *files;
    int count;
    MigrateReport report;
    const MigrateJob *job; // NULL: the bootstrap
} Run;

// One holder at a time in the whole database; the number is arbitrary and must never change.
static const char LOCK_SQL[] = "SELECT pg_advisory_lock(7311402561207715104)";
// No function, operator or table of a schema that others may write to stands in for one of
// Postgres.
static const char PATH_SQL[] = "SET search_path = pg_catalog, pg_temp";
static const char WHO_SQL[] =
    "SELECT rolname FROM pg_roles WHERE rolname = current_user AND rolsuper";
// Only what is missing is created: IF NOT EXISTS would ask for the right to create it even then.
static const char TABLE_SQL[] =
    "DO $$ BEGIN"
    " IF to_regnamespace('stentor') IS NULL THEN CREATE SCHEMA stentor; END IF;"
    " IF to_regclass('stentor.migrations') IS NULL THEN CREATE TABLE stentor.migrations ("
    "  schema text NOT NULL, number integer NOT NULL, slug text NOT NULL, checksum text NOT NULL,"
    "  applied_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (schema, number)); END IF;"
    " END $$";
static const char FIND_SQL[] = "SELECT checksum, (SELECT max(number) FROM stentor.migrations WHERE "
                               "schema = $1), slug FROM (SELECT 1) AS one"
                               " LEFT JOIN stentor.migrations ON schema = $1 AND number = $2::int4";
static const char RECORD_SQL[] = "INSERT INTO stentor.migrations (schema, number, slug, checksum)"
                                 " VALUES ($1, $2::int4, $3, $4)";

// ---- talking to Postgres, blocking ----

static void ignore_notice(void *ctx, const char *message)
{
    (void)ctx;
    (void)message;
}

static bool is_ok(const PGresult *res)
{
    ExecStatusType status = PQresultStatus(res);
    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK || status == PGRES_EMPTY_QUERY;
}

static bool execute(PGconn *pg, const char *sql, const char *name, Error *err)
{
    CLEANUP(free_result) PGresult *res = PQexec(pg, sql);
    return is_ok(res) || db_error_result(res, name, err);
}

static PGconn *connect_to(const char *url, Error *err)
{
    const char *keywords[] = {"dbname", "application_name", "client_encoding", NULL};
    const char *values[] = {url, "stentor-migrate", "UTF8", NULL};
    PGconn *pg = PQconnectdbParams(keywords, values, 1);
    if (PQstatus(pg) != CONNECTION_OK) {
        db_error_connection(pg, "postgres", err);
        PQfinish(pg);
        return NULL;
    }
    PQsetNoticeProcessor(pg, ignore_notice, NULL);
    if (!execute(pg, PATH_SQL, "search path", err)) {
        PQfinish(pg);
        return NULL;
    }
    return pg;
}

// ---- files ----

static bool parse_name(const char *name, File *ret)
{
    Str rest = str_from(name);
    int64_t number = 0;
    if (rest.len >= NAME_SIZE || rest.len < NUMBER_DIGITS + 1 || !str_ends(rest, STR(".sql")) ||
        !str_to_i64(str_slice(rest, 0, NUMBER_DIGITS), &number) || number < 1 ||
        rest.ptr[NUMBER_DIGITS] != '_') {
        return false;
    }
    memcpy(ret->name, name, rest.len + 1);
    ret->number = (int)number;
    ret->slug = str_slice(str_from(ret->name), NUMBER_DIGITS + 1, rest.len - 4);
    return id_is_key(ret->slug);
}

static int compare_files(const void *a, const void *b)
{
    const File *left = a;
    const File *right = b;
    return left->number - right->number;
}

static bool add_file(Run *run, const char *name, Error *err)
{
    if (run->count == FILES_MAX) {
        return error_set(err, ERROR_CONFIG, "'%s' has too many migrations", run->schema);
    }
    if (!parse_name(name, &run->files[run->count])) {
        return error_set(
            err, ERROR_CONFIG, "'%s/%s' is not named NNNN_slug.sql", run->schema, name);
    }
    run->count++;
    return true;
}

static bool check_order(Run *run, Error *err)
{
    qsort(run->files, (size_t)run->count, sizeof *run->files, compare_files);
    for (int i = 0; i < run->count; i++) {
        File *file = &run->files[i];
        file->slug.ptr = file->name + NUMBER_DIGITS + 1; // sorting has moved it
        if (i > 0 && file->number == file[-1].number) {
            return error_set(
                err, ERROR_CONFIG, "'%s/%s' and '%s' have the same number", run->schema,
                file[-1].name, file->name);
        }
    }
    return true;
}

static bool list_files(Run *run, Error *err)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "%s/%s", run->folder, run->schema);
    CLEANUP(close_folder) DIR *folder = opendir(path);
    if (folder == NULL) {
        return error_set(err, ERROR_CONFIG, "cannot read '%s': %s", path, strerror(errno));
    }
    run->files = arena_array(run->arena, FILES_MAX, sizeof *run->files);
    run->count = 0;
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        bool is_sql = str_ends(str_from(entry->d_name), STR(".sql"));
        if (is_sql && entry->d_name[0] != '.' && !add_file(run, entry->d_name, err)) {
            return false;
        }
    }
    return check_order(run, err);
}

static bool read_text(const Run *run, const File *file, char **ret_text, Error *err)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "%s/%s/%s", run->folder, run->schema, file->name);
    CLEANUP(close_file) FILE *stream = fopen(path, "rb");
    if (stream == NULL) {
        return error_set(err, ERROR_CONFIG, "cannot read '%s': %s", path, strerror(errno));
    }
    struct stat info;
    if (fstat(fileno(stream), &info) != 0 || info.st_size > FILE_MAX_BYTES) {
        return error_set(
            err, ERROR_CONFIG, "'%s' is larger than %d MiB", path, FILE_MAX_BYTES / (1024 * 1024));
    }
    size_t size = (size_t)info.st_size;
    char *text = arena_alloc(run->arena, size + 1);
    size_t len = fread(text, 1, size, stream);
    if (len != size || memchr(text, '\0', len) != NULL) {
        return error_set(err, ERROR_CONFIG, "'%s' cannot be read or holds a NUL", path);
    }
    text[len] = '\0';
    *ret_text = text;
    return true;
}

// ---- one file ----

// Postgres counts characters from 1; lines are what a person looks for. 0: it did not say where.
static int find_line(const char *text, const PGresult *res)
{
    const char *field = PQresultErrorField(res, PG_DIAG_STATEMENT_POSITION);
    int64_t position = 0;
    if (field == NULL || !str_to_i64(str_from(field), &position)) {
        return 0;
    }
    int line = 1;
    for (const char *at = text; *at != '\0' && position > 1; at++) {
        bool starts_character = ((unsigned char)at[1] & 0xC0) != 0x80;
        position -= starts_character ? 1 : 0;
        line += *at == '\n' ? 1 : 0;
    }
    return line;
}

static bool fail_file(
    const Run *run, const File *file, const char *text, const PGresult *res, Error *err)
{
    const char *words = PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY);
    const char *state = PQresultErrorField(res, PG_DIAG_SQLSTATE);
    if (state == NULL) {
        return db_error_connection(run->pg, "postgres", err);
    }
    int line = find_line(text, res);
    if (line == 0) {
        return error_set(
            err, ERROR_CONFIG, "%s/%s: %s (%s)", run->schema, file->name, words, state);
    }
    return error_set(
        err, ERROR_CONFIG, "%s/%s:%d: %s (%s)", run->schema, file->name, line, words, state);
}

static bool record(const Run *run, const File *file, const char *checksum, Error *err)
{
    char number[16];
    snprintf(number, sizeof number, "%d", file->number);
    const char *values[] = {run->schema, number, arena_cstr(run->arena, file->slug), checksum};
    CLEANUP(free_result)
    PGresult *res = PQexecParams(run->pg, RECORD_SQL, 4, NULL, values, NULL, NULL, 0);
    return is_ok(res) || db_error_result(res, "stentor.migrations", err);
}

static bool run_file(const Run *run, const File *file, const char *text, Error *err)
{
    CLEANUP(free_result) PGresult *res = PQexec(run->pg, text);
    if (!is_ok(res)) {
        return fail_file(run, file, text, res, err);
    }
    return PQtransactionStatus(run->pg) == PQTRANS_INTRANS ||
           error_set(
               err, ERROR_CONFIG, "%s/%s ends its transaction itself", run->schema, file->name);
}

// The file and its row are one transaction: killed anywhere, it is applied whole and known, or not
// at all (migrate_pg_test: a_failing_file_leaves_nothing_behind).
static bool apply(Run *run, const File *file, const char *text, const char *checksum, Error *err)
{
    if (!execute(run->pg, "BEGIN", "begin", err) || !run_file(run, file, text, err) ||
        !record(run, file, checksum, err) || !execute(run->pg, "COMMIT", "commit", err)) {
        return false;
    }
    CRASH_POINT("migrate.applied");
    run->report.applied++;
    if (run->job->on_applied != NULL) {
        run->job->on_applied(run->job->ctx, run->schema, file->name);
    }
    return true;
}

static bool compare_with_applied(
    const Run *run, const File *file, const char *checksum, bool *ret_present, Error *err)
{
    char number[16];
    snprintf(number, sizeof number, "%04d", file->number);
    const char *values[] = {run->schema, number};
    CLEANUP(free_result)
    PGresult *res = PQexecParams(run->pg, FIND_SQL, 2, NULL, values, NULL, NULL, 0);
    if (!is_ok(res)) {
        return db_error_result(res, "stentor.migrations", err);
    }
    *ret_present = !PQgetisnull(res, 0, 0);
    if (*ret_present && !str_eq(file->slug, str_from(PQgetvalue(res, 0, 2)))) {
        return error_set(
            err, ERROR_CONFIG,
            "the database has migration '%s/%s_%s', this release '%s' in its place: it cannot be "
            "upgraded (HINT: an empty database and 'stentor migrate --bootstrap', or the release "
            "that made this one)",
            run->schema, number, PQgetvalue(res, 0, 2), file->name);
    }
    if (*ret_present && strcmp(PQgetvalue(res, 0, 0), checksum) != 0) {
        return error_set(
            err, ERROR_CONFIG, "'%s/%s' was changed after it was applied: add a new file instead",
            run->schema, file->name);
    }
    int64_t last = 0;
    bool known = str_to_i64(str_from(PQgetvalue(res, 0, 1)), &last);
    if (!*ret_present && known && last > file->number) {
        return error_set(
            err, ERROR_CONFIG, "'%s/%s' is not applied but number %04d is: give it a higher number",
            run->schema, file->name, (int)last);
    }
    return true;
}

// Reads a file; `present` says that it is applied already, as it stands.
static bool inspect_file(
    const Run *run, const File *file, char **ret_text, char ret_checksum[CHECKSUM_SIZE],
    bool *ret_present, Error *err)
{
    if (!read_text(run, file, ret_text, err)) {
        return false;
    }
    uint8_t digest[SHA256_LEN];
    sha256(str_from(*ret_text), digest);
    hex_encode(digest, sizeof digest, ret_checksum);
    return compare_with_applied(run, file, ret_checksum, ret_present, err);
}

static bool migrate_file(Run *run, const File *file, Error *err)
{
    char *text = NULL;
    char checksum[CHECKSUM_SIZE];
    bool present = false;
    if (!inspect_file(run, file, &text, checksum, &present, err)) {
        return false;
    }
    if (present) {
        run->report.present++;
        return true;
    }
    return apply(run, file, text, checksum, err);
}

static bool migrate_schema(Run *run, Error *err)
{
    CLEANUP(free_arena) Arena *arena = arena_new(0);
    run->arena = arena;
    if (!list_files(run, err)) {
        return false;
    }
    for (int i = 0; i < run->count; i++) {
        if (!migrate_file(run, &run->files[i], err)) {
            return false;
        }
    }
    return true;
}

// ---- as whom ----

static bool become(PGconn *pg, const char *role, Error *err)
{
    if (role == NULL) {
        return true;
    }
    char sql[NAME_SIZE];
    char *name = PQescapeIdentifier(pg, role, strlen(role));
    int len = name != NULL ? snprintf(sql, sizeof sql, "SET ROLE %s", name) : -1;
    PQfreemem(name);
    if (len < 0 || len >= (int)sizeof sql) {
        return error_set(err, ERROR_CONFIG, "'%s' is not the name of a role", role);
    }
    return execute(pg, sql, "role", err);
}

static bool check_who(PGconn *pg, const MigrateJob *job, Error *err)
{
    CLEANUP(free_result) PGresult *res = PQexec(pg, WHO_SQL);
    if (!is_ok(res)) {
        return db_error_result(res, "current role", err);
    }
    return PQntuples(res) == 0 || job->superuser_may ||
           error_set(
               err, ERROR_CONFIG,
               "'%s' is a superuser and would own what the migrations make (" INSUFFICIENT ")",
               PQgetvalue(res, 0, 0));
}

static bool add_hint(const MigrateJob *job, Error *err)
{
    // Without the bootstrap a login as the owner fails with its name, and a right for a role of a
    // newer release with that role's.
    bool rights = strstr(err->text, INSUFFICIENT) != NULL ||
                  strstr(err->text, "\"" MIGRATE_OWNER "\"") != NULL ||
                  strstr(err->text, "role \"stentor_") != NULL;
    if (job->rights_hint != NULL && rights) {
        Error plain = *err;
        error_set(err, plain.kind, "%s (HINT: %s)", plain.text, job->rights_hint);
    }
    return false;
}

// ---- the surface ----

bool db_migrate(const MigrateJob *job, MigrateReport *ret, Error *err)
{
    PGconn *pg = connect_to(job->url, err);
    if (pg == NULL) {
        return add_hint(job, err);
    }
    Run run = {.pg = pg, .folder = job->folder, .job = job};
    bool ok = become(pg, job->role, err) && check_who(pg, job, err) &&
              execute(pg, LOCK_SQL, "migration lock", err) &&
              execute(pg, TABLE_SQL, "stentor.migrations", err);
    for (const char *const *schema = job->schemas; ok && *schema != NULL; schema++) {
        run.schema = *schema;
        ok = migrate_schema(&run, err);
    }
    PQfinish(pg); // rolls back what was open and frees the lock
    if (ok) {
        *ret = run.report;
    }
    return ok || add_hint(job, err);
}

// A database that cannot be migrated is refused before the bootstrap changes anything in it.
static bool check_first_schema(Run *run, Error *err)
{
    CLEANUP(free_result)
    PGresult *res =
        PQexec(run->pg, "SELECT FROM pg_class WHERE oid = to_regclass('stentor.migrations')");
    if (!is_ok(res)) {
        return db_error_result(res, "stentor.migrations", err);
    }
    if (PQntuples(res) == 0) {
        return true; // nothing was ever migrated
    }
    run->schema = migrate_schemas[0];
    bool ok = list_files(run, err);
    for (int i = 0; ok && i < run->count; i++) {
        char *text = NULL;
        char checksum[CHECKSUM_SIZE];
        bool present = false;
        ok = inspect_file(run, &run->files[i], &text, checksum, &present, err);
    }
    return ok;
}

static bool run_bootstrap(Run *run, Error *err)
{
    static const File files[] = {{.name = "bootstrap.sql"}, {.name = "hand_over.sql"}};
    bool ok = execute(run->pg, LOCK_SQL, "migration lock", err) && check_first_schema(run, err) &&
              execute(run->pg, "BEGIN", "begin", err);
    run->schema = ".";
    for (size_t i = 0; ok && i < sizeof files / sizeof *files; i++) {
        char *text = NULL;
        ok = read_text(run, &files[i], &text, err) && run_file(run, &files[i], text, err);
    }
    return ok && execute(run->pg, "COMMIT", "commit", err);
}

bool db_bootstrap(const char *url, const char *folder, Error *err)
{
    PGconn *pg = connect_to(url, err);
    if (pg == NULL) {
        return false;
    }
    CLEANUP(free_arena) Arena *arena = arena_new(0);
    Run run = {.pg = pg, .folder = folder, .arena = arena};
    bool ok = run_bootstrap(&run, err);
    PQfinish(pg);
    return ok;
}
