// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <sys/wait.h>

#include "tests/unit/common/keywork/key_stage.h"

static long epochs_where(Stage *stage, const char *condition)
{
    char sql[200];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM keys.epochs WHERE %s", condition);
    return count_of(stage, sql);
}

static void the_first_epoch_takes_all_keys_from_the_master_key(void **state)
{
    Stage *stage = *state;
    put_rows(stage->admin, stage->master, 0, 20);
    KeyworkReport report = stage_turn(stage);
    assert_true(report.held);
    assert_int_equal(report.wrapped, 20);
    assert_int_equal(report.left, 0);
    assert_int_equal(report.opened_us, START_US);
    assert_int_equal(count_of(stage, CURRENT_SQL), 20);
    assert_int_equal(epochs_where(stage, "number = 1 AND closed_at IS NULL"), 1);
    assert_int_equal(count_open(stage, "keys.data_keys"), 20);
    report = stage_turn(stage);
    assert_int_equal(report.wrapped, 0);
    assert_int_equal(report.event_count, 0);
}

static void a_copy_of_the_table_opens_until_its_epoch_is_destroyed(void **state)
{
    Stage *stage = *state;
    put_rows(stage->admin, stage->master, 0, 10);
    (void)stage_turn(stage);
    admin_exec(
        stage->admin,
        "DROP TABLE IF EXISTS backup; CREATE TABLE backup AS SELECT * FROM keys.data_keys");
    admin_exec(
        stage->admin, "UPDATE keys.data_keys SET wrapped = NULL, destroyed_at = now() WHERE subject"
                      " IN (SELECT subject FROM keys.data_keys LIMIT 4)");
    stage->now_us += 7 * DAY_US - 1000000;
    assert_int_equal(stage_turn(stage).event_count, 0); // not due
    stage->now_us += 1000000;
    KeyworkReport report = stage_turn(stage);
    assert_int_equal(report.event_count, 2); // opened, emptied
    assert_int_equal(report.wrapped, 6);
    assert_int_equal(epochs_where(stage, "number = 1 AND emptied_at IS NOT NULL"), 1);
    stage->now_us += 7 * DAY_US - 1000000;
    (void)stage_turn(stage);
    assert_int_equal(count_open(stage, "backup"), 10); // it is kept
    stage->now_us += 1000000;
    (void)stage_turn(stage); // the third is opened, too
    assert_int_equal(count_open(stage, "backup"), 0);
    assert_int_equal(epochs_where(stage, "number = 1 AND destroyed_at IS NOT NULL"), 1);
    assert_int_equal(epochs_where(stage, "number = 3 AND closed_at IS NULL"), 1);
    assert_int_equal(count_open(stage, "keys.data_keys"), 6);
}

typedef struct Witness {
    bool refuses;
    int asked;
    KeyworkEnding last;
} Witness;

static bool bear_witness(void *ctx, const KeyworkEnding *ending, Error *err)
{
    Witness *witness = ctx;
    witness->asked++;
    witness->last = *ending;
    return !witness->refuses || error_set(err, ERROR_TRANSIENT, "no witness");
}

static void a_key_stays_until_the_witness_has_its_end(void **state)
{
    Stage *stage = *state;
    Witness witness = {.refuses = true};
    KeyworkReport report;
    Error err = {0};
    stage->options.witness = bear_witness;
    stage->options.witness_ctx = &witness;
    (void)stage_turn(stage);
    stage->now_us += 7 * DAY_US;
    (void)stage_turn(stage); // the second is open, the first is empty
    assert_int_equal(witness.asked, 0);
    int64_t emptied_us = stage->now_us;
    stage->now_us += 8 * DAY_US;
    assert_false(keywork_turn(stage->work, stage->now_us, &report, &err));
    assert_int_equal(err.kind, ERROR_TRANSIENT);
    KeyworkEnding first = witness.last;
    assert_int_equal(first.number, 1);
    assert_int_equal(first.due_us, emptied_us + 7 * DAY_US);
    assert_int_equal(epochs_where(stage, "destroyed_at IS NOT NULL"), 0);
    assert_true(master_epochs_refresh(stage->master, &err));
    assert_non_null(master_epoch_find(stage->master, first.id));

    witness.refuses = false;
    stage->now_us += DAY_US;
    KeyworkReport next = {.held = false};
    for (int i = 0; i < 50 && !next.held; i++) { // the session that was given up ends in its time
        next = stage_turn(stage);
        wait_ms(next.held ? 0 : 20);
    }
    assert_int_equal(witness.asked, 2);
    assert_memory_equal(&witness.last, &first, sizeof first); // the same again
    assert_int_equal(epochs_where(stage, "number = 1 AND destroyed_at IS NOT NULL"), 1);
    assert_true(master_epochs_refresh(stage->master, &err));
    assert_null(master_epoch_find(stage->master, first.id));
}

static void a_key_is_used_when_every_machine_has_seen_it(void **state)
{
    Stage *stage = *state;
    stage->options.settle_us = 60 * 1000000;
    KeyworkReport report = stage_turn(stage);
    assert_true(report.again);
    assert_int_equal(epochs_where(stage, "true"), 0);
    assert_true(master_epochs_refresh(stage->master, NULL));
    assert_int_equal(master_epoch_count(stage->master), 1);
    assert_null(master_epoch_current(stage->master));
    stage->now_us += 61 * 1000000;
    (void)stage_turn(stage);
    assert_int_equal(epochs_where(stage, "number = 1"), 1);
    assert_true(master_epochs_refresh(stage->master, NULL));
    assert_int_equal(master_epoch_count(stage->master), 1); // the same one
    assert_non_null(master_epoch_current(stage->master));
}

static void an_operator_asks_for_the_next_epoch(void **state)
{
    Stage *stage = *state;
    (void)stage_turn(stage);
    admin_exec(stage->admin, "SELECT keys.ask_rotation()");
    assert_int_equal(stage_turn(stage).event_count, 2);
    assert_int_equal(epochs_where(stage, "number = 2 AND closed_at IS NULL"), 1);
    assert_int_equal(stage_turn(stage).event_count, 0); // once
}

static void one_process_does_the_work_and_another_goes_on(void **state)
{
    Stage *stage = *state;
    KeyworkReport report;
    (void)stage_turn(stage);
    Keywork *second = keywork_new(&stage->options);
    assert_true(keywork_turn(second, stage->now_us, &report, NULL));
    assert_false(report.held);
    keywork_free(stage->work);
    stage->work = NULL;
    for (int i = 0; i < 50 && !report.held; i++) { // the server ends the session in its own time
        wait_ms(20);
        assert_true(keywork_turn(second, stage->now_us, &report, NULL));
    }
    assert_true(report.held);
    keywork_stop(second);
    Error err = {0};
    assert_false(keywork_turn(second, stage->now_us, &report, &err));
    assert_int_equal(err.kind, ERROR_CANCELLED);
    keywork_free(second);
}

static void a_lost_epoch_key_is_named_and_nothing_is_destroyed(void **state)
{
    Stage *stage = *state;
    char path[200];
    char id[KEY_ID_SIZE];
    KeyworkReport report;
    Error err = {0};
    put_rows(stage->admin, stage->master, 0, 3);
    (void)stage_turn(stage);
    keywork_free(stage->work);
    assert_true(master_epochs_refresh(stage->master, NULL));
    key_id_print(master_epoch_current(stage->master)->id, id);
    snprintf(path, sizeof path, "%s/%s.epoch", stage->epochs, id);
    assert_int_equal(unlink(path), 0);
    stage->work = keywork_new(&stage->options);
    stage->now_us += 30 * DAY_US;
    bool held = false;
    for (int i = 0; i < 50 && !held; i++) {
        assert_false(keywork_turn(stage->work, stage->now_us, &report, &err) && report.held);
        held = report.held;
        wait_ms(20);
    }
    assert_int_equal(err.kind, ERROR_CONFIG);
    assert_non_null(strstr(err.text, id));
    assert_non_null(strstr(admin_value(stage->admin, "SELECT failure FROM keys.work"), id));
    assert_int_equal(epochs_where(stage, "emptied_at IS NOT NULL OR closed_at IS NOT NULL"), 0);
}

static void a_lost_name_of_the_current_key_is_written_again(void **state)
{
    Stage *stage = *state;
    char path[200];
    (void)stage_turn(stage);
    snprintf(path, sizeof path, "%s/current", stage->epochs);
    assert_int_equal(unlink(path), 0);
    (void)stage_turn(stage);
    (void)stage_turn(stage);
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(epochs_where(stage, "true"), 1);
}

// Postgres was restored from a backup in which the second epoch was not open yet.
static void a_folder_that_is_ahead_of_postgres_wins(void **state)
{
    Stage *stage = *state;
    put_rows(stage->admin, stage->master, 0, 5);
    (void)stage_turn(stage);
    admin_exec(
        stage->admin,
        "DROP TABLE IF EXISTS backup; CREATE TABLE backup AS SELECT * FROM keys.data_keys;"
        "DROP TABLE IF EXISTS backup_epochs; CREATE TABLE backup_epochs AS SELECT * FROM "
        "keys.epochs");
    stage->now_us += 8 * DAY_US;
    (void)stage_turn(stage);
    admin_exec(
        stage->admin,
        "TRUNCATE keys.epochs, keys.data_keys; INSERT INTO keys.epochs SELECT * FROM backup_epochs;"
        "INSERT INTO keys.data_keys SELECT * FROM backup");
    KeyworkReport report = stage_turn(stage);
    assert_int_equal(report.wrapped, 5);
    assert_int_equal(epochs_where(stage, "number = 2 AND closed_at IS NULL"), 1);
    assert_int_equal(count_of(stage, CURRENT_SQL), 5);
}

// ---- without epochs: a rotation of the master key ----

// With the first of these an earlier version has wrapped a key for the subject "0123456789abcde",
// generation 3.
static const char BARE[] = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n"
                           "ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1eff\n";
#define BARE_ROW                                                                                   \
    "('acme', '0123456789abcde\\000', 3, "                                                         \
    "'\\x6c6f95467b2be1d6a4e885695a74d19179d36b6e450ccdae940054d13fc54c918bb804ccdf7512557b6644b7" \
    "17a1fee7e1c7b505909f0f6fcb59f6c3')"

static void rotate_master(Stage *stage, bool epochs)
{
    char text[MASTER_KEY_FILE_SIZE];
    char second[KEY_ID_SIZE];
    Error err = {0};
    MasterKey *old = stage->master;
    assert_true(master_key_print(old, &(MasterKeyChange){.add = KEY_MASTER}, text, NULL));
    MasterKey *both = master_key_parse(str_from(text), NULL);
    key_id_print(master_key_info(both, KEY_MASTER, 1)->check, second);
    assert_true(master_key_print(both, &(MasterKeyChange){.first = second}, text, NULL));
    master_key_free(both);
    stage_write_file(stage, text);
    epoch_folder_close(stage->reader);
    stage->master = master_key_parse(str_from(text), &err);
    stage_register(stage, stage->master);
    stage->reader = epoch_folder_open(stage->epochs, stage->master, &err);
    stage->options.epoch_folder = epochs ? stage->epochs : "";
    master_key_free(old);
    keywork_free(stage->work);
    stage->work = NULL;
    wait_ms(100); // the session before has ended
}

static void start_bare(Stage *stage)
{
    epoch_folder_close(stage->reader);
    master_key_free(stage->master);
    stage->master = master_key_parse(str_from(BARE), NULL);
    stage->reader = epoch_folder_open(stage->epochs, stage->master, NULL);
    admin_exec(stage->admin, "TRUNCATE keys.master_keys");
    stage_register(stage, stage->master);
}

static void keys_of_before_are_wrapped_again_and_open(void **state)
{
    Stage *stage = *state;
    start_bare(stage);
    put_rows(stage->admin, stage->master, 0, 700); // two batches
    admin_exec(
        stage->admin,
        "INSERT INTO keys.data_keys (tenant_id, subject, generation, wrapped) VALUES " BARE_ROW);
    rotate_master(stage, false);
    put_rows(stage->admin, stage->master, 1000, 3);
    KeyworkReport report = stage_turn(stage);
    assert_int_equal(report.wrapped, 701);
    assert_int_equal(report.left, 0);
    assert_int_equal(count_of(stage, CURRENT_SQL), 704);
    assert_int_equal(count_open(stage, "keys.data_keys"), 704);
    assert_int_equal(epochs_where(stage, "true"), 0);
}

static void a_key_that_nothing_opens_stays_and_the_others_go_on(void **state)
{
    Stage *stage = *state;
    put_rows(stage->admin, stage->master, 0, 5);
    admin_exec(
        stage->admin, "INSERT INTO keys.data_keys (tenant_id, subject, generation, wrapped)"
                      " VALUES ('acme', substr(sha256('x'), 1, 16), 1, sha256('x') || "
                      "substr(sha256('y'), 1, 28))");
    for (size_t bulk_min = 1; bulk_min <= 1000; bulk_min += 999) {
        stage->options.bulk_min = bulk_min;
        rotate_master(stage, false);
        KeyworkReport report = stage_turn(stage);
        assert_int_equal(report.wrapped, 5);
        assert_int_equal(report.failed, 1);
        assert_non_null(strstr(report.failure.text, "was not wrapped by this"));
        assert_int_equal(stage_turn(stage).failed, 1); // and it goes on to be said
        assert_int_equal(
            count_of(
                stage, "SELECT count(*) FROM keys.data_keys WHERE wrapped = sha256('x') || "
                       "substr(sha256('y'), 1, 28)"),
            1);
        assert_int_equal(count_of(stage, CURRENT_SQL), 5);
    }
}

static void a_rotated_master_key_wraps_the_epoch_keys_too(void **state)
{
    Stage *stage = *state;
    char sql[300];
    char before[2 * KEY_ID_LEN + 1];
    put_rows(stage->admin, stage->master, 0, 5);
    (void)stage_turn(stage);
    key_id_print(master_key_info(stage->master, KEY_MASTER, 0)->check, before);
    rotate_master(stage, true);
    assert_int_equal(stage_turn(stage).wrapped, 0); // the epoch's key is the same
    // A file without the old key opens all.
    char text[MASTER_KEY_FILE_SIZE];
    assert_true(master_key_print(stage->master, &(MasterKeyChange){.without = before}, text, NULL));
    MasterKey *alone = master_key_parse(str_from(text), NULL);
    EpochFolder *folder = epoch_folder_open(stage->epochs, alone, NULL);
    assert_non_null(folder);
    epoch_folder_close(folder);
    master_key_free(alone);
    snprintf(
        sql, sizeof sql,
        "SELECT count(*) FROM keys.data_keys WHERE substr(wrapped, 1, 2) = '\\x0102'");
    assert_int_equal(count_of(stage, sql), 5);
}

// ---- what a taken-over ingest could do with the functions ----

static void what_the_current_key_has_wrapped_is_never_written_over(void **state)
{
    Stage *stage = *state;
    stage->options.epoch_folder = "";
    put_rows(stage->admin, stage->master, 7, 1);
    PGconn *service = PQconnectdb(stage->url);
    static const char *const attempts[] = {
        "SELECT keys.rewrap(array_agg(d.subject), array_agg(d.generation), array_agg(d.wrapped),"
        " array_agg(substr(d.wrapped, 1, 6) || substr(sha256('x') || sha256('y'), 1, 60)))"
        " FROM (SELECT set_config('app.tenant_id', 'acme', false)) s CROSS JOIN LATERAL (SELECT * "
        "FROM keys.data_keys) d",
        "SELECT count(*) FROM keys.to_rewrap('\\x010100000000', 10)",
        "SELECT coalesce(keys.count_left('\\x010100000000', 10), 0)",
        "SELECT keys.begin_bulk('\\x010100000000')::int",
    };
    for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++) {
        PGresult *res = PQexec(service, attempts[i]);
        if (PQresultStatus(res) != PGRES_TUPLES_OK) {
            fail_msg("%s", PQresultErrorMessage(res));
        }
        assert_string_equal(PQgetvalue(res, 0, 0), "0");
        PQclear(res);
    }
    // A table that is not complete never takes the place of the one that is.
    char begin[100];
    snprintf(
        begin, sizeof begin, "SELECT keys.begin_bulk('%s')",
        admin_value(stage->admin, "SELECT keys.current_wrapper()"));
    const char *const steps[] = {begin, "BEGIN", "SELECT keys.read_bulk()", "COMMIT"};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        admin_exec(service, steps[i]);
    }
    PGresult *swap = PQexec(service, "SELECT keys.swap_bulk()");
    assert_non_null(strstr(PQresultErrorMessage(swap), "is not complete"));
    PQclear(swap);
    PGresult *index = PQexec(service, "SELECT keys.index_bulk()");
    assert_non_null(strstr(PQresultErrorMessage(index), "another number"));
    PQclear(index);
    PQfinish(service);
    assert_int_equal(count_open(stage, "keys.data_keys"), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, stage_open, stage_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_first_epoch_takes_all_keys_from_the_master_key),
        TEST(a_copy_of_the_table_opens_until_its_epoch_is_destroyed),
        TEST(a_key_stays_until_the_witness_has_its_end),
        TEST(a_key_is_used_when_every_machine_has_seen_it),
        TEST(an_operator_asks_for_the_next_epoch),
        TEST(one_process_does_the_work_and_another_goes_on),
        TEST(a_lost_epoch_key_is_named_and_nothing_is_destroyed),
        TEST(a_lost_name_of_the_current_key_is_written_again),
        TEST(a_folder_that_is_ahead_of_postgres_wins),
        TEST(keys_of_before_are_wrapped_again_and_open),
        TEST(a_key_that_nothing_opens_stays_and_the_others_go_on),
        TEST(a_rotated_master_key_wraps_the_epoch_keys_too),
        TEST(what_the_current_key_has_wrapped_is_never_written_over),
    };
    return cmocka_run_group_tests(tests, migrate_once, NULL);
}
