// SPDX-License-Identifier: Apache-2.0
#define _XOPEN_SOURCE 700 // nftw
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ftw.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/db/migrate.h"
#include "tests/unit/common/db/pg_fixture.h"

typedef struct Stage {
    PGconn *admin;
    char folder[64];
    char applied[256]; // "a/0001_first.sql a/0002_second.sql"
    MigrateReport report;
    Error err;
} Stage;

static const char *const SCHEMAS[] = {"a", "b", NULL};

static void put_file(const Stage *stage, const char *name, const char *text)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", stage->folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void make_folder(const Stage *stage, const char *name)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", stage->folder, name);
    assert_int_equal(mkdir(path, 0700), 0);
}

static int set_up(void **state)
{
    Stage *stage = calloc(1, sizeof *stage);
    stage->admin = admin_connect();
    admin_exec(stage->admin, "DROP SCHEMA IF EXISTS stentor, a, b CASCADE");
    snprintf(stage->folder, sizeof stage->folder, "/tmp/stentor-migrate.XXXXXX");
    assert_non_null(mkdtemp(stage->folder));
    make_folder(stage, "a");
    make_folder(stage, "b");
    put_file(stage, "a/0001_first.sql", "CREATE SCHEMA a; CREATE TABLE a.one (x int);");
    put_file(stage, "a/0002_second.sql", "CREATE TABLE a.two (x int);");
    put_file(stage, "b/0001_first.sql", "CREATE SCHEMA b; CREATE VIEW b.one AS TABLE a.two;");
    *state = stage;
    return 0;
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *at)
{
    (void)info;
    (void)type;
    (void)at;
    return remove(path);
}

static int tear_down(void **state)
{
    Stage *stage = *state;
    nftw(stage->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    PQfinish(stage->admin);
    free(stage);
    return 0;
}

static void on_applied(void *ctx, const char *schema, const char *file)
{
    Stage *stage = ctx;
    size_t len = strlen(stage->applied);
    snprintf(
        stage->applied + len, sizeof stage->applied - len, "%s%s/%s", len > 0 ? " " : "", schema,
        file);
}

static bool run(Stage *stage)
{
    stage->applied[0] = '\0';
    error_clear(&stage->err);
    MigrateJob job = {
        .url = test_url(),
        .folder = stage->folder,
        .schemas = SCHEMAS,
        .superuser_may = true,
        .on_applied = on_applied,
        .ctx = stage};
    return db_migrate(&job, &stage->report, &stage->err);
}

static void files_are_applied_in_order(void **state)
{
    Stage *stage = *state;
    assert_true(run(stage));
    assert_int_equal(stage->report.applied, 3);
    assert_int_equal(stage->report.present, 0);
    assert_string_equal(stage->applied, "a/0001_first.sql a/0002_second.sql b/0001_first.sql");
    assert_string_equal(
        admin_value(
            stage->admin, "SELECT string_agg(schema || number || slug, ' ' ORDER BY schema,"
                          " number) FROM stentor.migrations WHERE length(checksum) = 64"),
        "a1first a2second b1first");
}

static void a_second_run_applies_nothing(void **state)
{
    Stage *stage = *state;
    assert_true(run(stage));
    assert_true(run(stage));
    assert_int_equal(stage->report.applied, 0);
    assert_int_equal(stage->report.present, 3);
    assert_string_equal(stage->applied, "");
}

// Four processes start on the same empty database, as replicas do.
static void many_at_once_apply_each_file_once(void **state)
{
    Stage *stage = *state;
    enum { COUNT = 4 };
    pid_t children[COUNT];
    for (int i = 0; i < COUNT; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            bool ok = run(stage);
            _exit(ok ? stage->report.applied : 100);
        }
    }
    int applied = 0;
    for (int i = 0; i < COUNT; i++) {
        int status = 0;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_true(WIFEXITED(status));
        applied += WEXITSTATUS(status);
    }
    assert_int_equal(applied, 3);
}

static void a_new_file_is_applied_alone(void **state)
{
    Stage *stage = *state;
    assert_true(run(stage));
    put_file(stage, "a/0003_third.sql", "ALTER TABLE a.two ADD COLUMN y text;");
    assert_true(run(stage));
    assert_string_equal(stage->applied, "a/0003_third.sql");
}

static void a_changed_file_is_refused(void **state)
{
    Stage *stage = *state;
    assert_true(run(stage));
    put_file(stage, "a/0002_second.sql", "CREATE TABLE a.two (x bigint);");
    assert_false(run(stage));
    assert_int_equal(stage->err.kind, ERROR_CONFIG);
    assert_non_null(strstr(stage->err.text, "'a/0002_second.sql' was changed"));
}

static void a_replaced_file_is_refused_with_what_to_do(void **state)
{
    Stage *stage = *state;
    assert_true(run(stage));
    char path[200];
    snprintf(path, sizeof path, "%s/a/0001_first.sql", stage->folder);
    assert_int_equal(unlink(path), 0);
    put_file(stage, "a/0001_all.sql", "CREATE SCHEMA a; CREATE TABLE a.one (x int);");
    assert_false(run(stage));
    assert_int_equal(stage->err.kind, ERROR_CONFIG);
    assert_string_equal(
        stage->err.text,
        "the database has migration 'a/0001_first', this release '0001_all.sql' in its place: it "
        "cannot be upgraded (HINT: an empty database and 'stentor migrate --bootstrap', or the "
        "release that made this one)");
}

// As a database of before the migrations were squashed has it.
static void the_bootstrap_changes_nothing_in_a_database_that_cannot_be_upgraded(void **state)
{
    Stage *stage = *state;
    admin_exec(
        stage->admin,
        "CREATE SCHEMA stentor; CREATE TABLE stentor.migrations (schema text NOT NULL, number "
        "integer NOT NULL, slug text NOT NULL, checksum text NOT NULL, applied_at timestamptz NOT "
        "NULL DEFAULT now(), PRIMARY KEY (schema, number));"
        "INSERT INTO stentor.migrations VALUES ('stentor', 1, 'roles_and_tenancy', 'c')");
    assert_false(db_bootstrap(test_url(), STENTOR_SOURCE_DIR "/migrations", &stage->err));
    assert_int_equal(stage->err.kind, ERROR_CONFIG);
    assert_non_null(
        strstr(stage->err.text, "the database has migration 'stentor/0001_roles_and_tenancy'"));
    assert_non_null(strstr(stage->err.text, "made this one)"));
    assert_string_equal(
        admin_value(
            stage->admin, "SELECT nspowner::regrole::text FROM pg_namespace"
                          " WHERE nspname = 'stentor'"),
        "postgres");
}

static void a_failing_file_names_its_line(void **state)
{
    Stage *stage = *state;
    put_file(
        stage, "a/0002_second.sql",
        "-- gr\xc3\xbc\xc3\x9f"
        "e aus K\xc3\xb6ln\nSELECT 1;\nSELECT\n    nonsense FROM a.one;\n");
    assert_false(run(stage));
    assert_int_equal(stage->err.kind, ERROR_CONFIG);
    assert_string_equal(
        stage->err.text, "a/0002_second.sql:4: column \"nonsense\" does not exist (42703)");
}

static void a_failing_file_leaves_nothing_behind(void **state)
{
    Stage *stage = *state;
    put_file(stage, "a/0002_second.sql", "CREATE TABLE a.two (x int); SELECT 1 / 0;");
    assert_false(run(stage));
    assert_non_null(strstr(stage->err.text, "a/0002_second.sql: division by zero"));
    assert_string_equal(admin_value(stage->admin, "SELECT to_regclass('a.two') IS NULL"), "t");
    assert_string_equal(admin_value(stage->admin, "SELECT count(*) FROM stentor.migrations"), "1");
    put_file(stage, "a/0002_second.sql", "CREATE TABLE a.two (x int);");
    assert_true(run(stage)); // corrected, it goes on from there
    assert_int_equal(stage->report.applied, 2);
}

static void a_file_that_ends_its_transaction_is_refused(void **state)
{
    Stage *stage = *state;
    put_file(stage, "a/0002_second.sql", "CREATE TABLE a.two (x int); COMMIT;");
    assert_false(run(stage));
    assert_non_null(strstr(stage->err.text, "ends its transaction itself"));
}

static void names_that_are_none_are_refused(void **state)
{
    Stage *stage = *state;
    put_file(stage, "b/12_short.sql", "");
    assert_false(run(stage));
    assert_string_equal(stage->err.text, "'b/12_short.sql' is not named NNNN_slug.sql");
}

static void two_files_of_one_number_are_refused(void **state)
{
    Stage *stage = *state;
    put_file(stage, "a/0002_another.sql", "SELECT 1;");
    assert_false(run(stage));
    assert_non_null(strstr(stage->err.text, "have the same number"));
    assert_string_equal(stage->applied, "");
}

static void a_file_below_an_applied_one_is_refused(void **state)
{
    Stage *stage = *state;
    put_file(stage, "b/0003_third.sql", "SELECT 1;");
    assert_true(run(stage));
    put_file(stage, "b/0002_late.sql", "SELECT 1;");
    assert_false(run(stage));
    assert_non_null(strstr(stage->err.text, "'b/0002_late.sql' is not applied but number 0003"));
}

static void a_schema_without_folder_is_an_error(void **state)
{
    Stage *stage = *state;
    const char *const schemas[] = {"nowhere", NULL};
    MigrateJob job = {
        .url = test_url(), .folder = stage->folder, .schemas = schemas, .superuser_may = true};
    assert_false(db_migrate(&job, &stage->report, &stage->err));
    assert_int_equal(stage->err.kind, ERROR_CONFIG);
    assert_non_null(strstr(stage->err.text, "nowhere"));
}

// ---- as whom ----

static void finding_01_a_superuser_is_refused_before_anything_is_made(void **state)
{
    Stage *stage = *state;
    MigrateJob job = {
        .url = test_url(),
        .folder = stage->folder,
        .schemas = SCHEMAS,
        .rights_hint = "another login"};
    assert_false(db_migrate(&job, &stage->report, &stage->err));
    assert_int_equal(stage->err.kind, ERROR_CONFIG);
    assert_string_equal(
        stage->err.text, "'postgres' is a superuser and would own what the migrations make (42501)"
                         " (HINT: another login)");
    assert_string_equal(
        admin_value(stage->admin, "SELECT to_regnamespace('stentor') IS NULL"), "t");
}

static void finding_01_what_is_made_belongs_to_the_role(void **state)
{
    Stage *stage = *state;
    assert_true(db_bootstrap(test_url(), STENTOR_SOURCE_DIR "/migrations", &stage->err));
    MigrateJob job = {
        .url = test_url(), .folder = stage->folder, .schemas = SCHEMAS, .role = MIGRATE_OWNER};
    if (!db_migrate(&job, &stage->report, &stage->err)) {
        fail_msg("%s", stage->err.text);
    }
    assert_string_equal(
        admin_value(
            stage->admin, "SELECT string_agg(DISTINCT relowner::regrole::text, ' ') FROM pg_class"
                          " WHERE oid IN ('a.one'::regclass, 'b.one'::regclass,"
                          " 'stentor.migrations'::regclass)"),
        MIGRATE_OWNER);
}

static void a_right_for_a_role_of_a_newer_release_asks_for_the_bootstrap(void **state)
{
    Stage *stage = *state;
    put_file(stage, "a/0003_role.sql", "GRANT USAGE ON SCHEMA a TO stentor_newer;");
    MigrateJob job = {
        .url = test_url(),
        .folder = stage->folder,
        .schemas = SCHEMAS,
        .rights_hint = "another login",
        .superuser_may = true};
    assert_false(db_migrate(&job, &stage->report, &stage->err));
    assert_int_equal(stage->err.kind, ERROR_CONFIG);
    assert_non_null(strstr(stage->err.text, "role \"stentor_newer\" does not exist"));
    assert_non_null(strstr(stage->err.text, " (HINT: another login)"));
}

static void finding_01_a_search_path_of_the_login_is_not_asked(void **state)
{
    Stage *stage = *state;
    admin_exec(
        stage->admin, "CREATE OR REPLACE FUNCTION public.to_regclass(text) RETURNS regclass"
                      " LANGUAGE sql AS 'SELECT 1 / 0; SELECT NULL::regclass';"
                      "ALTER ROLE postgres SET search_path = public, pg_catalog");
    bool ok = run(stage);
    admin_exec(
        stage->admin,
        "ALTER ROLE postgres RESET search_path; DROP FUNCTION public.to_regclass(text)");
    assert_true(ok);
}

static void an_absent_server_is_transient(void **state)
{
    Stage *stage = *state;
    MigrateJob job = {
        .url = "postgresql://unknown@127.0.0.1:1/none",
        .folder = stage->folder,
        .schemas = SCHEMAS};
    assert_false(db_migrate(&job, &stage->report, &stage->err));
    assert_int_equal(stage->err.kind, ERROR_TRANSIENT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(files_are_applied_in_order),
        TEST(a_second_run_applies_nothing),
        TEST(many_at_once_apply_each_file_once),
        TEST(a_new_file_is_applied_alone),
        TEST(a_changed_file_is_refused),
        TEST(a_replaced_file_is_refused_with_what_to_do),
        TEST(the_bootstrap_changes_nothing_in_a_database_that_cannot_be_upgraded),
        TEST(a_failing_file_names_its_line),
        TEST(a_failing_file_leaves_nothing_behind),
        TEST(a_file_that_ends_its_transaction_is_refused),
        TEST(names_that_are_none_are_refused),
        TEST(two_files_of_one_number_are_refused),
        TEST(a_file_below_an_applied_one_is_refused),
        TEST(a_schema_without_folder_is_an_error),
        TEST(finding_01_a_superuser_is_refused_before_anything_is_made),
        TEST(finding_01_what_is_made_belongs_to_the_role),
        TEST(a_right_for_a_role_of_a_newer_release_asks_for_the_bootstrap),
        TEST(finding_01_a_search_path_of_the_login_is_not_asked),
        TEST(an_absent_server_is_transient),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
