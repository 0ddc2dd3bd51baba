// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/keywork/keys_dump_storage.h"
#include "tests/unit/common/keywork/key_stage.h"

enum { ROWS = 4200 }; // more than one piece

static void file_of(const Stage *stage, char out[200])
{
    char name[KEYS_DUMP_NAME_SIZE];
    keys_dump_name(stage->now_us, name);
    snprintf(out, 200, "%s/%s", stage->folder, name);
}

static KeysDump dump(Stage *stage, char path[200])
{
    KeysDump made = {0};
    Error err = {0};
    PGconn *pg = PQconnectdb(stage->url); // as ingest
    file_of(stage, path);
    if (!keys_dump_write(pg, path, stage->now_us, NULL, &made, &err)) {
        fail_msg("%s", err.text);
    }
    PQfinish(pg);
    return made;
}

static KeysRestored restore(const char *path)
{
    KeysRestored restored = {0};
    KeysDump read = {0};
    Error err = {0};
    PGconn *pg = admin_connect();
    admin_exec(pg, "SET ROLE stentor_owner");
    if (!keys_dump_restore(pg, path, &read, &restored, &err)) {
        fail_msg("%s", err.text);
    }
    PQfinish(pg);
    return restored;
}

static void end_work(Stage *stage)
{
    keywork_free(stage->work);
    stage->work = NULL;
    wait_ms(100);
}

static void keep_backup(Stage *stage)
{
    admin_exec(
        stage->admin, "DROP TABLE IF EXISTS b_keys, b_epochs, b_master;"
                      "CREATE TABLE b_keys AS SELECT * FROM keys.data_keys;"
                      "CREATE TABLE b_epochs AS SELECT * FROM keys.epochs;"
                      "CREATE TABLE b_master AS SELECT * FROM keys.master_keys");
}

static void put_backup_back(Stage *stage)
{
    admin_exec(
        stage->admin, "TRUNCATE keys.data_keys, keys.epochs, keys.master_keys;"
                      "INSERT INTO keys.data_keys SELECT * FROM b_keys;"
                      "INSERT INTO keys.epochs SELECT * FROM b_epochs;"
                      "INSERT INTO keys.master_keys SELECT * FROM b_master");
}

static void an_old_backup_opens_again_with_the_newest_dump(void **state)
{
    Stage *stage = *state;
    char path[200];
    put_rows(stage->admin, stage->master, 0, ROWS);
    (void)stage_turn(stage);
    keep_backup(stage);
    // Two weeks later: a person is erased, another came, the first epoch's key is gone.
    admin_exec(
        stage->admin, "UPDATE keys.data_keys SET wrapped = NULL, destroyed_at = now() WHERE "
                      "get_byte(subject, 7) = 3");
    long erased = count_of(stage, "SELECT count(*) FROM keys.data_keys WHERE wrapped IS NULL");
    assert_true(erased > 0);
    put_rows(stage->admin, stage->master, 100000, 1);
    stage->now_us += 8 * DAY_US;
    (void)stage_turn(stage);
    stage->now_us += 8 * DAY_US;
    (void)stage_turn(stage);
    KeysDump made = dump(stage, path);
    assert_int_equal(made.data_keys, ROWS + 1);
    end_work(stage);

    put_backup_back(stage);
    assert_int_equal(count_open(stage, "keys.data_keys"), 0);
    KeysRestored restored = restore(path);
    assert_int_equal(restored.added, 1);
    assert_int_equal(restored.changed, ROWS);
    assert_int_equal(count_open(stage, "keys.data_keys"), ROWS + 1 - erased);
    assert_int_equal(
        count_of(stage, "SELECT count(*) FROM keys.data_keys WHERE wrapped IS NULL"), erased);
    assert_int_equal(count_of(stage, "SELECT number FROM keys.epochs WHERE closed_at IS NULL"), 3);
    assert_int_equal(restore(path).changed, 0); // safe to repeat
    assert_int_equal(stage_turn(stage).failed, 0);
    assert_int_equal(count_of(stage, CURRENT_SQL), ROWS + 1 - erased);
}

static void a_dump_that_is_older_than_the_database_takes_nothing_back(void **state)
{
    Stage *stage = *state;
    char path[200];
    put_rows(stage->admin, stage->master, 0, 20);
    (void)stage_turn(stage);
    (void)dump(stage, path);
    admin_exec(
        stage->admin,
        "UPDATE keys.data_keys SET wrapped = NULL, destroyed_at = now() WHERE subject ="
        " (SELECT subject FROM keys.data_keys ORDER BY subject LIMIT 1)");
    put_rows(stage->admin, stage->master, 100, 1);
    stage->now_us += 8 * DAY_US;
    (void)stage_turn(stage);
    end_work(stage);
    keep_backup(stage);
    (void)restore(path);
    assert_int_equal(
        count_of(
            stage, "SELECT count(*) FROM (SELECT * FROM b_keys EXCEPT SELECT * FROM "
                   "keys.data_keys) AS lost"),
        0);
    assert_int_equal(
        count_of(
            stage, "SELECT count(*) FROM (SELECT * FROM keys.epochs EXCEPT SELECT * FROM b_epochs) "
                   "AS changed"),
        0);
}

static void while_an_ingest_works_nothing_is_restored(void **state)
{
    Stage *stage = *state;
    char path[200];
    KeysDump read = {0};
    KeysRestored restored = {0};
    Error err = {0};
    (void)stage_turn(stage);
    (void)dump(stage, path);
    assert_false(keys_dump_restore(stage->admin, path, &read, &restored, &err));
    assert_non_null(strstr(err.text, "stop the services"));
}

static void a_damaged_dump_is_named_and_nothing_is_changed(void **state)
{
    Stage *stage = *state;
    char path[200];
    char bytes[20000];
    KeysDump read = {0};
    KeysRestored restored = {0};
    Error err = {0};
    put_rows(stage->admin, stage->master, 0, 10);
    (void)dump(stage, path);
    FILE *file = fopen(path, "rb");
    size_t len = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    assert_in_range(len, 1000, sizeof bytes - 1);
    assert_true(keys_dump_check(path, &read, &err));
    for (size_t at = 0; at < 2 * len; at += 7) {
        size_t place = at % len;
        bool cut = at >= len;
        file = fopen(path, "wb");
        bytes[place] = (char)(bytes[place] ^ (cut ? 0 : 1));
        fwrite(bytes, 1, cut ? place : len, file);
        bytes[place] = (char)(bytes[place] ^ (cut ? 0 : 1));
        fclose(file);
        assert_false(keys_dump_check(path, &read, &err));
        assert_int_equal(err.kind, ERROR_PERMANENT);
    }
    assert_false(keys_dump_restore(stage->admin, path, &read, &restored, &err));
    assert_int_equal(count_of(stage, "SELECT count(*) FROM keys.data_keys"), 10);
    assert_int_equal(unlink(path), 0);
    assert_false(keys_dump_check(path, &read, &err));
    assert_int_equal(err.kind, ERROR_CONFIG);
}

static void a_day_makes_a_dump_and_the_old_ones_go(void **state)
{
    Stage *stage = *state;
    char path[200];
    stage->options.dump_folder = stage->folder;
    stage->options.dump_keep_us = 14 * DAY_US;
    for (int day = 0; day < 20; day++) {
        assert_int_equal(stage_turn(stage).dumped_us, stage->now_us);
        stage->now_us += DAY_US / 2;
        assert_int_equal(stage_turn(stage).dumped_us, stage->now_us - DAY_US / 2);
        stage->now_us += DAY_US / 2;
    }
    int count = 0;
    DIR *dir = opendir(stage->folder);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        count += keys_dump_time(str_from(entry->d_name)) > 0 ? 1 : 0;
    }
    closedir(dir);
    assert_int_equal(count, 15);
    stage->now_us -= DAY_US;
    file_of(stage, path);
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(
        count_of(stage, "SELECT dumped_keys FROM keys.work WHERE dumped_at IS NOT NULL"), 0);
    assert_true(keys_dump_trim(stage->folder, stage->now_us + 400 * DAY_US, NULL));
    assert_int_equal(access(path, F_OK), 0); // the newest stays
}

static int count_objects(const Stage *stage)
{
    char path[200];
    snprintf(path, sizeof path, "%s/objects/keys-dumps", stage->folder);
    int count = 0;
    DIR *dir = opendir(path);
    for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
        count += keys_dump_time(str_from(entry->d_name)) > 0 ? 1 : 0;
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return count;
}

static void a_dump_is_an_object_too_and_opens_from_there(void **state)
{
    Stage *stage = *state;
    char url[200], path[200];
    Error err = {0};
    KeysDump read = {0};
    int64_t newest_us = 0;
    snprintf(url, sizeof url, "file://%s/objects", stage->folder);
    stage->options.storage.url = url;
    stage->options.dump_folder = stage->folder;
    stage->options.dump_keep_us = 3 * DAY_US;
    put_rows(stage->admin, stage->master, 0, 5);
    for (int day = 0; day < 6; day++) {
        stage->now_us += DAY_US;
        (void)stage_turn(stage);
        (void)stage_turn(stage); // stores nothing again
    }
    assert_int_equal(count_objects(stage), 4);
    StorageWait *storage = storage_wait_open(&(StorageOptions){.url = url}, &err);
    assert_true(keys_dump_newest_stored(storage, &newest_us, &err));
    assert_int_equal(newest_us, stage->now_us);
    snprintf(path, sizeof path, "%s/fetched", stage->folder);
    assert_true(keys_dump_fetch(storage, newest_us, path, &err));
    assert_true(keys_dump_check(path, &read, &err));
    assert_int_equal(read.data_keys, 5);
    assert_false(keys_dump_fetch(storage, newest_us + DAY_US, path, &err));
    assert_int_equal(err.kind, ERROR_CONFIG);
    assert_true(keys_dump_trim_stored(storage, newest_us + 400 * DAY_US, &err));
    assert_int_equal(count_objects(stage), 1); // the newest stays
    storage_wait_close(storage);
}

static void other_bytes_under_a_dumps_name_are_kept_and_named(void **state)
{
    Stage *stage = *state;
    char url[200], path[200];
    Error err = {0};
    snprintf(url, sizeof url, "file://%s/objects", stage->folder);
    put_rows(stage->admin, stage->master, 0, 5);
    (void)dump(stage, path);
    StorageWait *storage = storage_wait_open(&(StorageOptions){.url = url}, &err);
    assert_true(keys_dump_store(storage, path, stage->now_us, &err));
    assert_true(keys_dump_store(storage, path, stage->now_us, &err)); // a repeat counts
    put_rows(stage->admin, stage->master, 5, 1);
    (void)dump(stage, path);
    assert_false(keys_dump_store(storage, path, stage->now_us, &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
    assert_non_null(strstr(err.text, "has other bytes than its dump"));
    storage_wait_close(storage);
}

static void a_storage_that_is_away_is_named_and_the_dump_stored_later(void **state)
{
    Stage *stage = *state;
    char url[500], place[400];
    KeyworkReport report = {.held = false};
    Error err = {0};
    snprintf(place, sizeof place, "%s/away", stage->folder);
    snprintf(url, sizeof url, "file://%s/objects", place);
    stage->options.storage.url = url;
    stage->options.dump_folder = stage->folder;
    stage->options.dump_keep_us = 3 * DAY_US;
    stage->work = keywork_new(&stage->options);
    assert_false(keywork_turn(stage->work, stage->now_us, &report, &err));
    assert_non_null(strstr(err.text, "the keys' dump in storage"));
    assert_int_equal(report.dumped_us, stage->now_us); // the file is there
    assert_int_equal(mkdir(place, 0700), 0);
    for (int i = 0; i < 50 && !(report = stage_turn(stage)).held; i++) {
        wait_ms(20); // the session that was given up ends in its own time
    }
    snprintf(
        place, sizeof place, "%s/away/objects/keys-dumps/keys-20270115T080000Z.dump",
        stage->folder);
    assert_int_equal(access(place, F_OK), 0);
}

static void only_names_of_dumps_have_a_time(void **state)
{
    (void)state;
    char name[KEYS_DUMP_NAME_SIZE];
    keys_dump_name(START_US, name);
    assert_string_equal(name, "keys-20270115T080000Z.dump");
    assert_int_equal(keys_dump_time(str_from(name)), START_US);
    assert_int_equal(keys_dump_time(STR("keys-20270115T080000Z.dump.new")), 0);
    assert_int_equal(keys_dump_time(STR("keys-20271315T080000Z.dump")), 0);
    assert_int_equal(keys_dump_time(STR("keys-2027011xT080000Z.dump")), 0);
    assert_int_equal(keys_dump_time(STR("master.key")), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, stage_open, stage_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_old_backup_opens_again_with_the_newest_dump),
        TEST(a_dump_that_is_older_than_the_database_takes_nothing_back),
        TEST(while_an_ingest_works_nothing_is_restored),
        TEST(a_damaged_dump_is_named_and_nothing_is_changed),
        TEST(a_day_makes_a_dump_and_the_old_ones_go),
        TEST(a_dump_is_an_object_too_and_opens_from_there),
        TEST(other_bytes_under_a_dumps_name_are_kept_and_named),
        TEST(a_storage_that_is_away_is_named_and_the_dump_stored_later),
        cmocka_unit_test(only_names_of_dumps_have_a_time),
    };
    return cmocka_run_group_tests(tests, migrate_once, NULL);
}
