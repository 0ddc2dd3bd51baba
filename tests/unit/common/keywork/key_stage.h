// SPDX-License-Identifier: Apache-2.0
// A master key file, a folder of epoch keys, a database with data keys, and a time that the test
// moves. Included behind cmocka.h.
#pragma once

#include <dirent.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/base/id.h"
#include "common/codec/hash.h"
#include "common/codec/seal.h"
#include "common/db/master_keys.h"
#include "common/epochs/epoch_folder.h"
#include "common/keywork/keywork.h"
#include "tests/unit/common/db/migrated.h"
#include "tests/unit/common/db/pg_fixture.h"

enum { ROW_SUBJECT_LEN = 16 };

#define DAY_US (INT64_C(86400) * 1000000)
static const int64_t START_US = INT64_C(1800000000) * 1000000;

typedef struct Stage {
    PGconn *admin;
    char folder[64]; // master.key and epochs/ in it
    char key_file[96];
    char epochs[96];
    char url[300];
    MasterKey *master;   // as a program that opens keys has it
    EpochFolder *reader; // of `master`
    int64_t now_us;
    KeyworkOptions options;
    Keywork *work;
} Stage;

static inline void stage_write_file(const Stage *stage, const char *text)
{
    FILE *file = fopen(stage->key_file, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static inline void stage_register(Stage *stage, MasterKey *master)
{
    KeyRegister keys;
    Error err = {0};
    if (!master_keys_learn(stage->admin, master, &keys, &err)) {
        fail_msg("%s", err.text);
    }
}

static inline int stage_open(void **state)
{
    Stage *stage = calloc(1, sizeof *stage);
    char random[132];
    Error err = {0};
    stage->admin = admin_connect();
    admin_exec(
        stage->admin, "SELECT keys.abandon_bulk(); TRUNCATE keys.data_keys, keys.master_keys, "
                      "keys.epochs, people.addresses;"
                      "UPDATE keys.work SET rotate_number = NULL, failure = NULL");
    snprintf(stage->folder, sizeof stage->folder, "/tmp/keywork.XXXXXX");
    assert_non_null(mkdtemp(stage->folder));
    snprintf(stage->key_file, sizeof stage->key_file, "%s/master.key", stage->folder);
    snprintf(stage->epochs, sizeof stage->epochs, "%s/epochs", stage->folder);
    assert_int_equal(mkdir(stage->epochs, 0700), 0);
    master_key_generate(random);
    stage_write_file(stage, random);
    stage->master = master_key_parse(str_from(random), &err);
    stage_register(stage, stage->master);
    stage->reader = epoch_folder_open(stage->epochs, stage->master, &err);
    assert_non_null(stage->reader);
    stage->now_us = START_US;
    url_with("&user=stentor_ingest", stage->url, sizeof stage->url);
    stage->options = (KeyworkOptions){
        .database_url = stage->url,
        .application_name = "keywork-test",
        .master_key_file = stage->key_file,
        .epoch_folder = stage->epochs,
        .dump_folder = "",
        .epoch_us = 7 * DAY_US,
        .keep_us = 7 * DAY_US,
        .bulk_min = 1000000,
    };
    *state = stage;
    return 0;
}

static inline void stage_empty_folder(const char *path)
{
    char name[800];
    DIR *dir = opendir(path);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        bool is_own = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
        if (!is_own && unlink(name) != 0) {
            stage_empty_folder(name);
        }
    }
    closedir(dir);
    (void)rmdir(path);
}

static inline int stage_close(void **state)
{
    Stage *stage = *state;
    keywork_free(stage->work);
    epoch_folder_close(stage->reader);
    master_key_free(stage->master);
    PQfinish(stage->admin);
    stage_empty_folder(stage->epochs);
    stage_empty_folder(stage->folder);
    free(stage);
    return 0;
}

static inline int migrate_once(void **state)
{
    (void)state;
    migrate_these(migrate_schemas);
    return 0;
}

// ---- turns ----

static inline void wait_ms(long ms)
{
    struct timespec pause = {.tv_nsec = ms * 1000000L};
    (void)nanosleep(&pause, NULL);
}

static inline KeyworkReport stage_turn(Stage *stage)
{
    KeyworkReport report;
    Error err = {0};
    if (stage->work == NULL) {
        stage->work = keywork_new(&stage->options);
    }
    if (!keywork_turn(stage->work, stage->now_us, &report, &err)) {
        fail_msg("%s", err.text);
    }
    return report;
}

// ---- rows ----

static inline void row_subject(int number, uint8_t subject[ROW_SUBJECT_LEN])
{
    memset(subject, 0, ROW_SUBJECT_LEN);
    subject[0] = (uint8_t)(number * 37);
    for (size_t i = 0; i < 4; i++) {
        subject[4 + i] = (uint8_t)((unsigned)number >> (24 - 8 * i));
    }
}

// Rows first .. first + count - 1, wrapped by what wraps now, in tenant acme.
static inline void put_rows(PGconn *pg, MasterKey *master, int first, int count)
{
    Error err = {0};
    size_t size = (size_t)count * 260 + 200;
    char *sql = malloc(size);
    assert_true(master_epochs_refresh(master, &err));
    int at = snprintf(
        sql, size, "INSERT INTO keys.data_keys (tenant_id, subject, generation, wrapped) VALUES ");
    for (int i = 0; i < count; i++) {
        uint8_t subject[ROW_SUBJECT_LEN];
        uint8_t wrapped[WRAPPED_KEY_LEN];
        char subject_hex[2 * sizeof subject + 1];
        char wrapped_hex[2 * WRAPPED_KEY_LEN + 1];
        row_subject(first + i, subject);
        data_key_free(data_key_new(master, subject, 1, wrapped));
        hex_encode(subject, sizeof subject, subject_hex);
        hex_encode(wrapped, sizeof wrapped, wrapped_hex);
        at += snprintf(
            sql + at, size - (size_t)at, "%s('acme', '\\x%s', 1, '\\x%s')", i > 0 ? ", " : "",
            subject_hex, wrapped_hex);
    }
    admin_exec(pg, sql);
    free(sql);
}

static inline long count_of(Stage *stage, const char *sql)
{
    return strtol(admin_value(stage->admin, sql), NULL, 10);
}

#define CURRENT_SQL                                                                                \
    "SELECT count(*) FROM keys.data_keys WHERE length(wrapped) = 66"                               \
    " AND substr(wrapped, 1, 6) = keys.current_wrapper()"

// Of a table of data keys, live or a copy: how many of its wrapped keys open with every key that
// exists now.
static inline long count_open(Stage *stage, const char *table)
{
    char sql[200];
    Error err = {0};
    long opened = 0;
    assert_true(master_epochs_refresh(stage->master, &err));
    snprintf(
        sql, sizeof sql, "SELECT subject, generation, wrapped FROM %s WHERE wrapped IS NOT NULL",
        table);
    PGresult *rows = PQexecParams(stage->admin, sql, 0, NULL, NULL, NULL, NULL, 1);
    assert_int_equal(PQresultStatus(rows), PGRES_TUPLES_OK);
    for (int i = 0; i < PQntuples(rows); i++) {
        DataKey *key = data_key_unwrap(
            stage->master, (const uint8_t *)PQgetvalue(rows, i, 0),
            (uint32_t)db_get_int(rows, i, 1), db_get_text(rows, i, 2), NULL);
        opened += key != NULL ? 1 : 0;
        data_key_free(key);
    }
    PQclear(rows);
    return opened;
}
