// SPDX-License-Identifier: Apache-2.0
// All data keys into a new table, beside programs that go on writing; and killed at each point.
// Turns are done by a program of their own.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <sys/wait.h>

#include "common/db/keyring.h"
#include "tests/unit/common/keywork/key_stage.h"

enum { ROWS = 9000 }; // more than two chunks

// What a child does: two turns.
static int do_child(char **words)
{
    KeyworkReport report;
    Error err = {0};
    char url[400] = "";
    if (words[4][0] != '\0') {
        snprintf(url, sizeof url, "file://%s/objects", words[4]);
    }
    Keywork *work = keywork_new(&(KeyworkOptions){
        .storage = {.url = url},
        .database_url = words[0],
        .application_name = "keywork-test",
        .master_key_file = words[1],
        .epoch_folder = words[2],
        .dump_folder = words[4],
        .epoch_us = 7 * DAY_US,
        .keep_us = 7 * DAY_US,
        .bulk_min = 1,
    });
    int64_t now_us = strtoll(words[3], NULL, 10);
    bool done = false;
    for (int i = 0; i < 200 && !done; i++) { // the session of a killed one ends in its own time
        done = keywork_turn(work, now_us, &report, &err) && report.held;
        wait_ms(done ? 0 : 20);
    }
    done = done && keywork_turn(work, now_us, &report, &err);
    if (!done) {
        fprintf(stderr, "%s\n", err.text);
    }
    keywork_free(work);
    return done ? 0 : 1;
}

// Two turns at this time in a program of their own, which reads STENTOR_CRASH_AT for itself.
// point NULL: to the end.
static int turns_of_child(Stage *stage, const char *point)
{
    int status = 0;
    char now[24];
    snprintf(now, sizeof now, "%lld", (long long)stage->now_us);
    pid_t pid = fork();
    if (pid == 0) {
        if (point != NULL) {
            (void)setenv("STENTOR_CRASH_AT", point, 1);
        }
        execl(
            "/proc/self/exe", "bulk_pg_test", stage->url, stage->key_file, stage->epochs, now,
            stage->options.dump_folder, (char *)NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void do_turns(Stage *stage)
{
    assert_int_equal(turns_of_child(stage, NULL), 0);
}

static char *describe(Stage *stage)
{
    PGresult *rows = PQexec(
        stage->admin, "SELECT string_agg(line, E'\n' ORDER BY line) FROM "
                      "stentor.describe_schema('keys') AS line");
    assert_int_equal(PQresultStatus(rows), PGRES_TUPLES_OK);
    char *text = strdup(PQgetvalue(rows, 0, 0));
    PQclear(rows);
    return text;
}

static void all_rows_are_wrapped_again_and_the_table_is_the_same(void **state)
{
    Stage *stage = *state;
    put_rows(stage->admin, stage->master, 0, ROWS);
    admin_exec(
        stage->admin, "UPDATE keys.data_keys SET wrapped = NULL, destroyed_at = created_at WHERE "
                      "get_byte(subject, 0) = 7");
    long destroyed = count_of(stage, "SELECT count(*) FROM keys.data_keys WHERE wrapped IS NULL");
    assert_true(destroyed > 10);
    admin_exec(
        stage->admin,
        "UPDATE keys.data_keys SET restricted_by = 'ers_1' WHERE get_byte(subject, 0) = 8");
    admin_exec(
        stage->admin,
        "DROP TABLE IF EXISTS backup; CREATE TABLE backup AS SELECT tenant_id, subject, generation,"
        " created_at, destroyed_at, restricted_by FROM keys.data_keys");
    char *before = describe(stage);
    do_turns(stage);
    char *after = describe(stage);
    assert_string_equal(before, after);
    free(before);
    free(after);
    assert_int_equal(count_of(stage, CURRENT_SQL), ROWS - destroyed);
    assert_int_equal(
        count_of(
            stage, "SELECT count(*) FROM (SELECT * FROM backup EXCEPT SELECT tenant_id, subject, "
                   "generation, created_at,"
                   " destroyed_at, restricted_by FROM keys.data_keys) AS lost"),
        0);
    assert_int_equal(count_of(stage, "SELECT count(*) FROM keys.data_keys"), ROWS);
    assert_int_equal(count_open(stage, "keys.data_keys"), ROWS - destroyed);
    assert_int_equal(count_of(stage, "SELECT count(*) FROM keys.data_key_changes"), 0);
}

// ---- others go on ----

// Inserts and erases, each as one transaction with a note of it, until it is killed.
static void write_for_ever(Stage *stage)
{
    PGconn *pg = admin_connect();
    for (int i = 0;; i++) {
        char sql[700];
        snprintf(
            sql, sizeof sql,
            "WITH made AS (INSERT INTO keys.data_keys (tenant_id, subject, generation, wrapped)"
            " VALUES ('acme', substr(sha256('w%d'), 1, 16), 1, keys.current_wrapper() || "
            "substr(sha256('x') || sha256('y'), 1, 60))"
            " RETURNING subject), erased AS (UPDATE keys.data_keys SET wrapped = NULL, "
            "destroyed_at = now()"
            " WHERE subject = (SELECT subject FROM backup WHERE number = %d) RETURNING subject),"
            " note AS (INSERT INTO expected SELECT subject, false FROM made)"
            " INSERT INTO expected SELECT subject, true FROM erased",
            i, i);
        admin_exec(pg, sql);
    }
    (void)stage;
}

static void what_is_written_meanwhile_is_carried_over(void **state)
{
    Stage *stage = *state;
    put_rows(stage->admin, stage->master, 0, ROWS);
    do_turns(stage);
    admin_exec(
        stage->admin,
        "DROP TABLE IF EXISTS backup, expected;"
        "CREATE TABLE backup AS SELECT row_number() OVER () AS number, subject FROM keys.data_keys;"
        "CREATE INDEX ON backup (number); CREATE TABLE expected (subject bytea, erased boolean)");
    pid_t writer = fork();
    if (writer == 0) {
        write_for_ever(stage);
    }
    for (int i = 0; i < 500 && count_of(stage, "SELECT count(*) FROM expected") < 20; i++) {
        wait_ms(10);
    }
    long before = count_of(stage, "SELECT count(*) FROM expected");
    stage->now_us += 8 * DAY_US;
    do_turns(stage);
    long after = count_of(stage, "SELECT count(*) FROM expected");
    kill(writer, SIGKILL);
    waitpid(writer, NULL, 0);
    assert_true(before >= 20 && after > before);
    wait_ms(200); // its last statement has ended
    assert_int_equal(
        count_of(
            stage, "SELECT count(*) FROM expected e WHERE NOT EXISTS (SELECT FROM keys.data_keys d"
                   " WHERE d.subject = e.subject AND (d.wrapped IS NULL) = e.erased)"),
        0);
    assert_int_equal(
        count_of(
            stage, "SELECT count(*) - 9000 - (SELECT count(*) FROM expected WHERE NOT erased) FROM "
                   "keys.data_keys"),
        0);
}

// ---- a program that has the table's statements prepared ----

static void on_resolved(void *ctx, const Error *err)
{
    Answer *answer = ctx;
    answer->done = true;
    answer->err = err != NULL ? *err : (Error){0};
}

static bool resolve(Fixture *fx, Keyring *ring, const char *recipient)
{
    Answer answer = {.done = false};
    KeyWant want = keyring_want(ring, DATA_KEY_ORDINARY, STR("acme"), str_from(recipient));
    keyring_resolve(ring, &want, 1, on_resolved, &answer);
    assert_true(run_for(&fx->loop, &answer.done, true, WAIT_MS));
    assert_string_equal(answer.err.text, "");
    return want.key != NULL;
}

static void a_keyring_finds_and_makes_keys_before_and_after(void **state)
{
    Stage *stage = *state;
    Fixture *fx = fixture_new(&(DbPoolOptions){.url = stage->url, .connections = 1});
    Keyring *ring = keyring_new(fx->pool, stage->master, &(KeyringOptions){0});
    assert_true(resolve(fx, ring, "rcp_1"));
    for (int i = 2; i < 5; i++) {
        char name[16];
        do_turns(stage);
        snprintf(name, sizeof name, "rcp_%d", i);
        assert_true(resolve(fx, ring, name));
        stage->now_us += 8 * DAY_US;
    }
    keyring_free(ring);
    ring = keyring_new(fx->pool, stage->master, &(KeyringOptions){0}); // nothing in memory
    assert_true(resolve(fx, ring, "rcp_1"));
    assert_int_equal(count_of(stage, "SELECT count(*) FROM keys.data_keys"), 4);
    keyring_free(ring);
    fixture_free(fx);
}

// ---- killed ----

static void killed_at_any_point_the_next_turn_finishes(void **state)
{
    Stage *stage = *state;
    static const char *const points[] = {
        "keywork.made",       "keywork.used",    "keywork.opened",  "keywork.begun",
        "keywork.copied",     "keywork.swapped", "keywork.emptied", "keywork.witnessed",
        "keywork.destroyed",  "keywork.dumped",  "keywork.stored",  "epochs.set_aside",
        "epochs.overwritten",
    };
    stage->options.dump_folder = stage->folder;
    put_rows(stage->admin, stage->master, 0, 50);
    do_turns(stage);
    char *before = describe(stage);
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        stage->now_us += 8 * DAY_US;
        int status = turns_of_child(stage, points[i]);
        if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) {
            fail_msg("%s was not passed", points[i]);
        }
        assert_int_equal(count_open(stage, "keys.data_keys"), 50);
        do_turns(stage);
        assert_int_equal(count_of(stage, CURRENT_SQL), 50);
        assert_int_equal(count_open(stage, "keys.data_keys"), 50);
        // One a turn, whatever was left over; the one before is kept.
        assert_int_equal(count_of(stage, "SELECT count(*) FROM keys.epochs"), (long)i + 2);
        assert_int_equal(
            count_of(stage, "SELECT count(*) FROM keys.epochs WHERE destroyed_at IS NULL"), 2);
        assert_int_equal(master_epoch_count(stage->master), 2);
    }
    char *after = describe(stage);
    assert_string_equal(before, after);
    free(before);
    free(after);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, stage_open, stage_close)

int main(int argc, char **argv)
{
    if (argc > 1) {
        return do_child(argv + 1);
    }
    const struct CMUnitTest tests[] = {
        TEST(all_rows_are_wrapped_again_and_the_table_is_the_same),
        TEST(what_is_written_meanwhile_is_carried_over),
        TEST(a_keyring_finds_and_makes_keys_before_and_after),
        TEST(killed_at_any_point_the_next_turn_finishes),
    };
    return cmocka_run_group_tests(tests, migrate_once, NULL);
}
