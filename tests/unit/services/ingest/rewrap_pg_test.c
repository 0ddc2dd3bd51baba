// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/id.h"
#include "common/codec/seal.h"
#include "common/db/master_keys.h"
#include "services/ingest/rewrap.h"
#include "tests/unit/common/db/migrated.h"
#include "tests/unit/common/db/pg_fixture.h"

// With the first of these an earlier version has wrapped a key for the subject "0123456789abcde",
// generation 3.
static const char BARE[] = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n"
                           "ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1eff\n";
#define BARE_ROW                                                                                   \
    "('acme', '0123456789abcde\\000', 3, "                                                         \
    "'\\x6c6f95467b2be1d6a4e885695a74d19179d36b6e450ccdae940054d13fc54c918bb804ccdf7512557b6644b7" \
    "17a1fee7e1c7b505909f0f6fcb59f6c3')"

typedef struct Stage {
    Fixture *fx;
    MasterKey *old;
    MasterKey *master; // its own key first, then the old one
    Metrics *metrics;
} Stage;

static int migrate_once(void **state)
{
    (void)state;
    migrate_these(migrate_schemas);
    return 0;
}

static MasterKey *parse(const char *text)
{
    MasterKey *master = master_key_parse(str_from(text), NULL);
    assert_non_null(master);
    return master;
}

static MasterKey *rotated(const MasterKey *old)
{
    char text[MASTER_KEY_FILE_SIZE];
    char second[KEY_ID_SIZE];
    assert_true(master_key_print(old, &(MasterKeyChange){.add = KEY_MASTER}, text, NULL));
    MasterKey *both = parse(text);
    key_id_print(master_key_info(both, KEY_MASTER, 1)->check, second);
    assert_true(master_key_print(both, &(MasterKeyChange){.first = second}, text, NULL));
    master_key_free(both);
    return parse(text);
}

static void register_file(Stage *stage, MasterKey *master)
{
    KeyRegister keys;
    Error err = {0};
    if (!master_keys_learn(stage->fx->admin, master, &keys, &err)) {
        fail_msg("%s", err.text);
    }
}

static int set_up(void **state)
{
    char url[200];
    Stage *stage = calloc(1, sizeof *stage);
    stage->fx = fixture_new(&(DbPoolOptions){
        .url = url_with("&user=stentor_ingest", url, sizeof url), .connections = 1});
    admin_exec(stage->fx->admin, "TRUNCATE keys.data_keys, keys.master_keys, people.addresses");
    stage->old = parse(BARE);
    stage->master = rotated(stage->old);
    stage->metrics = metrics_new();
    register_file(stage, stage->old);
    register_file(stage, stage->master);
    *state = stage;
    return 0;
}

static int tear_down(void **state)
{
    Stage *stage = *state;
    fixture_free(stage->fx);
    master_key_free(stage->old);
    master_key_free(stage->master);
    metrics_free(stage->metrics);
    free(stage);
    return 0;
}

static void put_row(Stage *stage, MasterKey *master, int number)
{
    uint8_t subject[16] = {(uint8_t)number};
    uint8_t wrapped[WRAPPED_KEY_LEN];
    char subject_hex[2 * sizeof subject + 1];
    char wrapped_hex[2 * WRAPPED_KEY_LEN + 1];
    char sql[512];
    data_key_free(data_key_new(master, subject, 1, wrapped));
    hex_encode(subject, sizeof subject, subject_hex);
    hex_encode(wrapped, sizeof wrapped, wrapped_hex);
    snprintf(
        sql, sizeof sql,
        "INSERT INTO keys.data_keys (tenant_id, subject, generation, wrapped)"
        " VALUES ('acme', '\\x%s', 1, '\\x%s')",
        subject_hex, wrapped_hex);
    admin_exec(stage->fx->admin, sql);
}

// Rows that the current key has wrapped.
static long count_current(Stage *stage)
{
    return strtol(
        admin_value(
            stage->fx->admin,
            "SELECT count(*) FROM keys.data_keys"
            " WHERE length(wrapped) = 66 AND substr(wrapped, 1, 6) = keys.current_wrapper()"),
        NULL, 10);
}

static void on_freed(void *ctx)
{
    *(bool *)ctx = true;
}

static void run_until(Stage *stage, long wanted)
{
    bool freed = false;
    bool never = false;
    Rewrap *rewrap = rewrap_new(stage->fx->pool, stage->master, stage->metrics);
    for (int i = 0; i < 300 && count_current(stage) != wanted; i++) {
        (void)run_for(&stage->fx->loop, &never, true, 50);
    }
    assert_int_equal(count_current(stage), wanted);
    rewrap_free(rewrap, on_freed, &freed);
    assert_true(run_for(&stage->fx->loop, &freed, true, WAIT_MS));
}

static void keys_of_before_are_wrapped_again_and_open(void **state)
{
    Stage *stage = *state;
    enum { ROWS = 200, CURRENT = 3 };
    admin_exec(
        stage->fx->admin,
        "INSERT INTO keys.data_keys (tenant_id, subject, generation, wrapped) VALUES " BARE_ROW);
    admin_exec(
        stage->fx->admin,
        "INSERT INTO keys.data_keys (tenant_id, subject, generation, destroyed_at)"
        " VALUES ('acme', substr(sha256('d'), 1, 16), 1, now())");
    for (int i = 0; i < CURRENT; i++) {
        put_row(stage, stage->master, i);
    }
    for (int i = CURRENT; i < ROWS; i++) {
        put_row(stage, stage->old, i);
    }
    run_until(stage, ROWS + 1);
    assert_string_equal(
        admin_value(stage->fx->admin, "SELECT count(*) FROM keys.data_keys WHERE wrapped IS NULL"),
        "1");
    const char *hex = admin_value(
        stage->fx->admin,
        "SELECT encode(wrapped, 'hex') FROM keys.data_keys WHERE subject = '0123456789abcde\\000'");
    uint8_t wrapped[WRAPPED_KEY_LEN];
    size_t len = 0;
    Error err = {0};
    assert_true(hex_decode(str_from(hex), wrapped, sizeof wrapped, &len));
    DataKey *key = data_key_unwrap(
        stage->master, (const uint8_t *)"0123456789abcde", 3, str_of(wrapped, len), &err);
    assert_non_null(key);
    data_key_free(key);
}

static void a_key_that_nothing_opens_stays_and_the_others_go_on(void **state)
{
    Stage *stage = *state;
    admin_exec(
        stage->fx->admin, "INSERT INTO keys.data_keys (tenant_id, subject, generation, wrapped)"
                          " VALUES ('acme', substr(sha256('x'), 1, 16), 1, sha256('x') || "
                          "substr(sha256('y'), 1, 28))");
    put_row(stage, stage->old, 7);
    run_until(stage, 1);
    assert_string_equal(
        admin_value(
            stage->fx->admin, "SELECT count(*) FROM keys.data_keys"
                              " WHERE wrapped = sha256('x') || substr(sha256('y'), 1, 28)"),
        "1");
}

// What a taken-over ingest could do with the function.
static void what_the_current_key_has_wrapped_is_never_written_over(void **state)
{
    Stage *stage = *state;
    char url[200];
    put_row(stage, stage->master, 7);
    PGconn *service = PQconnectdb(url_with("&user=stentor_ingest", url, sizeof url));
    static const char *const attempts[] = {
        "SELECT keys.rewrap(array_agg(d.subject), array_agg(d.generation), array_agg(d.wrapped),"
        " array_agg(substr(d.wrapped, 1, 6) || substr(sha256('x') || sha256('y'), 1, 60)))"
        " FROM (SELECT set_config('app.tenant_id', 'acme', false)) s CROSS JOIN LATERAL (SELECT * "
        "FROM keys.data_keys) d",
        "SELECT count(*) FROM keys.to_rewrap('\\x010100000000', 10)",
    };
    for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++) {
        PGresult *res = PQexec(service, attempts[i]);
        if (PQresultStatus(res) != PGRES_TUPLES_OK) {
            fail_msg("%s", PQresultErrorMessage(res));
        }
        assert_string_equal(PQgetvalue(res, 0, 0), "0");
        PQclear(res);
    }
    PQfinish(service);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(keys_of_before_are_wrapped_again_and_open),
        TEST(a_key_that_nothing_opens_stays_and_the_others_go_on),
        TEST(what_the_current_key_has_wrapped_is_never_written_over),
    };
    return cmocka_run_group_tests(tests, migrate_once, NULL);
}
