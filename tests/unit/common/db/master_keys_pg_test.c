// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/codec/hash.h"
#include "common/codec/seal.h"
#include "common/db/master_keys.h"
#include "common/db/migrate.h"
#include "tests/unit/common/db/migrated.h"
#include "tests/unit/common/db/pg_fixture.h"

typedef struct Stage {
    PGconn *pg;
    MasterKey *master;
    MasterKey *other;
} Stage;

static int migrate_once(void **state)
{
    (void)state;
    migrate_these(migrate_schemas);
    return 0;
}

static MasterKey *make_master(void)
{
    char text[132];
    master_key_generate(text);
    MasterKey *master = master_key_parse(str_from(text), NULL);
    assert_non_null(master);
    return master;
}

static void run(Stage *stage, const char *sql)
{
    PGresult *res = PQexec(stage->pg, sql);
    ExecStatusType status = PQresultStatus(res);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
        fail_msg("%s", PQresultErrorMessage(res));
    }
    PQclear(res);
}

static int set_up(void **state)
{
    Stage *stage = calloc(1, sizeof *stage);
    stage->pg = PQconnectdb(test_url());
    stage->master = make_master();
    stage->other = make_master();
    run(stage, "TRUNCATE keys.master_keys, keys.data_keys, people.addresses");
    *state = stage;
    return 0;
}

static int tear_down(void **state)
{
    Stage *stage = *state;
    PQfinish(stage->pg);
    master_key_free(stage->master);
    master_key_free(stage->other);
    free(stage);
    return 0;
}

// The lines of the two files, mixed.
static MasterKey *mix(const MasterKey *masters, const MasterKey *hashes)
{
    char a[MASTER_KEY_FILE_SIZE];
    char b[MASTER_KEY_FILE_SIZE];
    char text[2 * MASTER_KEY_FILE_SIZE];
    assert_true(master_key_print(masters, &(MasterKeyChange){0}, a, NULL));
    assert_true(master_key_print(hashes, &(MasterKeyChange){0}, b, NULL));
    *strstr(a, "\nhash ") = '\0';
    snprintf(text, sizeof text, "%s%s", a, strstr(b, "\nhash "));
    MasterKey *mixed = master_key_parse(str_from(text), NULL);
    assert_non_null(mixed);
    return mixed;
}

static void exec_bytes(Stage *stage, const char *sql, const char *text, Str first, Str second)
{
    const char *values[] = {text, first.ptr, second.ptr};
    const int lengths[] = {0, (int)first.len, (int)second.len};
    const int formats[] = {0, 1, 1};
    PGresult *res = PQexecParams(stage->pg, sql, 3, NULL, values, lengths, formats, 0);
    if (PQresultStatus(res) != PGRES_COMMAND_OK) {
        fail_msg("%s", PQresultErrorMessage(res));
    }
    PQclear(res);
}

// A recipient as an installation of before has one: a data key, and an address sealed under it.
static void add_person(Stage *stage)
{
    static const char RECIPIENT[] = "rcp_01M2V3W4X5Y6Z7A8B9CADBECFE";
    uint8_t subject[KEY_SUBJECT_LEN];
    uint8_t wrapped[WRAPPED_KEY_LEN];
    uint8_t hash[ADDRESS_HASH_LEN] = {1};
    key_subject(
        master_hash_key(stage->master), DATA_KEY_ORDINARY, STR("acme"), str_from(RECIPIENT),
        subject);
    data_key_free(data_key_new(stage->master, subject, 1, wrapped));
    exec_bytes(
        stage,
        "INSERT INTO keys.data_keys (tenant_id, subject, generation, wrapped)"
        " VALUES ($1, $2::bytea, 1, $3::bytea)",
        "acme", str_of(subject, sizeof subject), str_of(wrapped, sizeof wrapped));
    exec_bytes(
        stage,
        "INSERT INTO people.addresses (tenant_id, recipient_id, channel, address_hash, address, "
        "status, verified, is_primary,"
        " position) VALUES ('acme', $1, 'email', $2::bytea, $3::bytea, 'active', true, true, 0)",
        RECIPIENT, str_of(hash, sizeof hash), STR("x"));
}

static size_t count_registered(Stage *stage)
{
    KeyRegister keys;
    Error err = {0};
    assert_true(master_keys_load(stage->pg, &keys, &err));
    return keys.count;
}

static void expect_refused(Stage *stage, MasterKey *master, const char *said)
{
    KeyRegister keys;
    Error err = {0};
    assert_false(master_keys_learn(stage->pg, master, &keys, &err));
    assert_int_equal(err.kind, ERROR_CONFIG);
    if (strstr(err.text, said) == NULL) {
        fail_msg("%s", err.text);
    }
}

static void the_first_file_is_registered_and_another_refused(void **state)
{
    Stage *stage = *state;
    KeyRegister keys;
    Error err = {0};
    assert_int_equal(count_registered(stage), 0);
    assert_true(master_keys_learn(stage->pg, stage->master, &keys, &err));
    assert_int_equal(keys.count, 2);
    assert_true(master_keys_learn(stage->pg, stage->master, &keys, &err)); // again: nothing new
    assert_int_equal(count_registered(stage), 2);
    expect_refused(stage, stage->other, "another installation's file");
    MasterKey *half = mix(stage->master, stage->other);
    expect_refused(stage, half, "expected the hash key");
    master_key_free(half);
    assert_int_equal(count_registered(stage), 2);
}

static void finding_05_an_upgrade_takes_only_the_file_that_opens_what_is_there(void **state)
{
    Stage *stage = *state;
    KeyRegister keys;
    Error err = {0};
    add_person(stage);
    expect_refused(stage, stage->other, "does not open the data keys of this database");
    MasterKey *half = mix(stage->master, stage->other);
    expect_refused(stage, half, "does not find the recipients of this database");
    master_key_free(half);
    assert_int_equal(count_registered(stage), 0);
    assert_true(master_keys_learn(stage->pg, stage->master, &keys, &err));
    assert_int_equal(count_registered(stage), 2);
}

static void on_keys_read(void *ctx, const KeyRegister *keys, const Error *err)
{
    Answer *answer = ctx;
    answer->done = true;
    answer->err = err != NULL ? *err : (Error){0};
    assert_true(err != NULL || keys->count == 2);
}

static void each_role_that_holds_keys_reads_the_register_and_writes_none(void **state)
{
    Stage *stage = *state;
    static const char *const roles[] = {"ingest",         "renderer",   "dispatcher",
                                        "digest_flusher", "order_saga", "cli"};
    KeyRegister keys;
    Error err = {0};
    assert_true(master_keys_learn(stage->pg, stage->master, &keys, &err));
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        char more[64];
        char url[300];
        snprintf(more, sizeof more, "&user=stentor_%s", roles[i]);
        Fixture *fx =
            fixture_new(&(DbPoolOptions){.url = url_with(more, url, sizeof url), .connections = 1});
        Answer answer = {.done = false};
        master_keys_read(fx->pool, on_keys_read, &answer);
        assert_true(run_for(&fx->loop, &answer.done, true, WAIT_MS));
        assert_int_equal(answer.err.kind, ERROR_NONE);
        fixture_free(fx);
        PGconn *service = PQconnectdb(url);
        PGresult *res = PQexec(service, "DELETE FROM keys.master_keys");
        assert_string_equal(PQresultErrorField(res, PG_DIAG_SQLSTATE), "42501");
        PQclear(res);
        PQfinish(service);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_first_file_is_registered_and_another_refused),
        TEST(finding_05_an_upgrade_takes_only_the_file_that_opens_what_is_there),
        TEST(each_role_that_holds_keys_reads_the_register_and_writes_none),
    };
    return cmocka_run_group_tests(tests, migrate_once, NULL);
}
