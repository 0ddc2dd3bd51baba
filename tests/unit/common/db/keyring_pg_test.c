// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/cleanup.h"
#include "common/base/id.h"
#include "common/codec/epoch_keys.h"
#include "common/db/keyring.h"
#include "tests/unit/common/db/migrated.h"
#include "tests/unit/common/db/pg_fixture.h"

enum { CACHE_MS = 200 };

typedef struct Stage {
    Fixture *fx;
    MasterKey *master;
    Keyring *ring;
    Keyring *other;
    Arena *arena;
} Stage;

typedef struct Resolved {
    bool done;
    Error err;
} Resolved;

static int migrate_once(void **state)
{
    (void)state;
    const char *const schemas[] = {"stentor", "keys", NULL};
    migrate_these(schemas);
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

static int set_up_as(void **state, const char *role)
{
    char url[200];
    Stage *stage = calloc(1, sizeof *stage);
    stage->fx =
        fixture_new(&(DbPoolOptions){.url = url_with(role, url, sizeof url), .connections = 2});
    admin_exec(stage->fx->admin, "TRUNCATE keys.data_keys, keys.epochs");
    stage->arena = arena_new(0);
    stage->master = make_master();
    const KeyringOptions options = {.cache_max = 100, .cache_ms = CACHE_MS};
    stage->ring = keyring_new(stage->fx->pool, stage->master, &options);
    stage->other = keyring_new(stage->fx->pool, stage->master, &options);
    *state = stage;
    return 0;
}

static int set_up(void **state)
{
    return set_up_as(state, "&user=stentor_ingest");
}

static int set_up_reader(void **state)
{
    return set_up_as(state, "&user=stentor_renderer");
}

static int tear_down(void **state)
{
    Stage *stage = *state;
    keyring_free(stage->ring);
    keyring_free(stage->other);
    fixture_free(stage->fx);
    master_key_free(stage->master);
    arena_free(stage->arena);
    free(stage);
    return 0;
}

static KeyWant want(const char *tenant, int person, uint32_t generation)
{
    KeyWant result = {.tenant = str_from(tenant), .generation = generation};
    snprintf((char *)result.subject, sizeof result.subject, "%s-%d", tenant, person);
    return result;
}

static void on_resolved(void *ctx, const Error *err)
{
    Resolved *resolved = ctx;
    resolved->done = true;
    resolved->err = err != NULL ? *err : (Error){0};
}

static Error resolve(Stage *stage, Keyring *ring, KeyWant *wants, size_t count)
{
    Resolved resolved = {0};
    keyring_resolve(ring, wants, count, on_resolved, &resolved);
    assert_true(run_for(&stage->fx->loop, &resolved.done, true, WAIT_MS));
    return resolved.err;
}

static KeyWant resolve_one(Stage *stage, Keyring *ring, KeyWant one)
{
    Error err = resolve(stage, ring, &one, 1);
    assert_int_equal(err.kind, ERROR_NONE);
    return one;
}

// What one key seals, the other opens.
static bool is_same_key(DataKey *a, DataKey *b)
{
    Arena *arena = arena_new(0);
    Stentor__V1__Sealed *sealed = seal(a, STR("acme"), STR("ntf_1"), "address", STR("x"), arena);
    Str plain;
    bool same = unseal(b, STR("acme"), STR("ntf_1"), "address", sealed, arena, &plain, NULL) &&
                str_eq(plain, STR("x"));
    arena_free(arena);
    return same;
}

static const char *count_rows(Stage *stage)
{
    return admin_value(stage->fx->admin, "SELECT count(*) FROM keys.data_keys");
}

static void a_new_subject_gets_a_key_and_a_row(void **state)
{
    Stage *stage = *state;
    KeyWant one = resolve_one(stage, stage->ring, want("acme", 1, 0));
    assert_non_null(one.key);
    assert_int_equal(data_key_generation(one.key), 1);
    assert_string_equal(
        admin_value(
            stage->fx->admin,
            "SELECT tenant_id || generation || length(wrapped) FROM keys.data_keys"),
        "acme166");
}

static void the_key_is_found_again_by_another_ring(void **state)
{
    Stage *stage = *state;
    KeyWant made = resolve_one(stage, stage->ring, want("acme", 1, 0));
    KeyWant current = resolve_one(stage, stage->other, want("acme", 1, 0));
    KeyWant first = resolve_one(stage, stage->other, want("acme", 1, 1));
    assert_true(is_same_key(made.key, current.key));
    assert_true(is_same_key(made.key, first.key));
    assert_string_equal(count_rows(stage), "1");
}

static void a_ring_that_makes_none_finds_what_is_there(void **state)
{
    Stage *stage = *state;
    KeyWant made = resolve_one(stage, stage->ring, want("acme", 1, 0));
    Keyring *finds =
        keyring_new(stage->fx->pool, stage->master, &(KeyringOptions){.found_only = true});
    KeyWant wants[] = {want("acme", 1, 0), want("acme", 2, 0)};
    assert_int_equal(resolve(stage, finds, wants, 2).kind, ERROR_NONE);
    assert_true(is_same_key(made.key, wants[0].key));
    assert_null(wants[1].key);
    assert_string_equal(count_rows(stage), "1");
    keyring_free(finds);
}

static void a_cached_key_is_given_inside_the_call(void **state)
{
    Stage *stage = *state;
    KeyWant one = resolve_one(stage, stage->ring, want("acme", 1, 0));
    KeyWant again = want("acme", 1, 0);
    Resolved resolved = {0};
    keyring_resolve(stage->ring, &again, 1, on_resolved, &resolved);
    assert_true(resolved.done);
    assert_ptr_equal(again.key, one.key);
}

static void a_batch_with_repeats_and_tenants_is_resolved_at_once(void **state)
{
    Stage *stage = *state;
    enum { COUNT = 300 };
    KeyWant wants[COUNT];
    for (int i = 0; i < COUNT; i++) {
        wants[i] = want(i % 2 == 0 ? "acme" : "globex", i % 100, 0);
    }
    assert_int_equal(resolve(stage, stage->ring, wants, COUNT).kind, ERROR_NONE);
    for (int i = 0; i < COUNT; i++) {
        assert_non_null(wants[i].key);
        assert_ptr_equal(wants[i].key, wants[i % 100].key);
    }
    assert_false(is_same_key(wants[0].key, wants[1].key));
    assert_string_equal(count_rows(stage), "100");
}

static void known_and_new_keys_come_together(void **state)
{
    Stage *stage = *state;
    KeyWant known = resolve_one(stage, stage->ring, want("acme", 1, 0));
    KeyWant wants[] = {want("acme", 2, 0), want("acme", 1, 0), want("acme", 3, 1)};
    assert_int_equal(resolve(stage, stage->ring, wants, 3).kind, ERROR_NONE);
    assert_non_null(wants[0].key);
    assert_ptr_equal(wants[1].key, known.key);
    assert_null(wants[2].key); // never existed
}

static void destroy(Stage *stage)
{
    admin_exec(stage->fx->admin, "UPDATE keys.data_keys SET wrapped = NULL, destroyed_at = now()");
    run_ms(&stage->fx->loop, CACHE_MS + 50);
}

static void a_destroyed_key_is_forgotten_and_the_next_is_another(void **state)
{
    Stage *stage = *state;
    KeyWant before = resolve_one(stage, stage->ring, want("acme", 1, 0));
    assert_int_equal(data_key_generation(before.key), 1);
    destroy(stage);
    KeyWant old = resolve_one(stage, stage->ring, want("acme", 1, 1));
    assert_null(old.key);
    KeyWant after = resolve_one(stage, stage->ring, want("acme", 1, 0));
    assert_int_equal(data_key_generation(after.key), 2);
    assert_null(resolve_one(stage, stage->ring, want("acme", 1, 1)).key);
    assert_string_equal(count_rows(stage), "2");
}

static void two_rings_agree_on_one_key(void **state)
{
    Stage *stage = *state;
    enum { COUNT = 50 };
    KeyWant mine[COUNT];
    KeyWant theirs[COUNT];
    for (int i = 0; i < COUNT; i++) { // in opposite orders, on two connections
        mine[i] = want("acme", i, 0);
        theirs[COUNT - 1 - i] = want("acme", i, 0);
    }
    Resolved a = {0};
    Resolved b = {0};
    keyring_resolve(stage->ring, mine, COUNT, on_resolved, &a);
    keyring_resolve(stage->other, theirs, COUNT, on_resolved, &b);
    assert_true(run_for(&stage->fx->loop, &a.done, true, WAIT_MS));
    assert_true(run_for(&stage->fx->loop, &b.done, true, WAIT_MS));
    assert_int_equal(a.err.kind, ERROR_NONE);
    assert_int_equal(b.err.kind, ERROR_NONE);
    for (int i = 0; i < COUNT; i++) {
        assert_true(is_same_key(mine[i].key, theirs[COUNT - 1 - i].key));
    }
    assert_string_equal(count_rows(stage), "50");
}

// A key that Postgres forgets in a crash and the cache does not would encrypt data that no key
// opens.
static void a_new_key_is_on_the_disk_before_it_is_given(void **state)
{
    Stage *stage = *state;
    for (int i = 0; i < 5; i++) { // the log writer may happen to flush once
        char before[32];
        snprintf(
            before, sizeof before, "%s",
            admin_value(stage->fx->admin, "SELECT pg_current_wal_insert_lsn()"));
        assert_non_null(resolve_one(stage, stage->ring, want("acme", i, 0)).key);
        char sql[96];
        snprintf(sql, sizeof sql, "SELECT pg_current_wal_flush_lsn() > '%s'::pg_lsn", before);
        assert_string_equal(admin_value(stage->fx->admin, sql), "t");
    }
}

static void a_key_of_another_tenant_is_not_found(void **state)
{
    Stage *stage = *state;
    KeyWant made = resolve_one(stage, stage->ring, want("acme", 1, 0));
    assert_non_null(made.key);
    KeyWant stolen = want("globex", 1, 1);
    memcpy(stolen.subject, made.subject, sizeof stolen.subject);
    KeyWant wants[] = {stolen, want("acme", 1, 1)}; // also when the right tenant is named beside it
    assert_int_equal(resolve(stage, stage->other, wants, 2).kind, ERROR_NONE);
    assert_null(wants[0].key);
    assert_non_null(wants[1].key);
}

static void a_want_that_names_no_tenant_has_no_key(void **state)
{
    Stage *stage = *state;
    KeyWant wants[] = {want("ACME,globex", 1, 0), want("", 1, 0), want("acme", 1, UINT32_MAX)};
    assert_int_equal(resolve(stage, stage->ring, wants, 3).kind, ERROR_NONE);
    for (int i = 0; i < 3; i++) {
        assert_null(wants[i].key);
    }
}

static void the_cache_keeps_its_maximum(void **state)
{
    Stage *stage = *state;
    KeyWant first = resolve_one(stage, stage->ring, want("acme", 0, 0));
    for (int i = 1; i <= 150; i += 10) {
        KeyWant wants[10];
        for (int j = 0; j < 10; j++) {
            wants[j] = want("acme", i + j, 0);
        }
        assert_int_equal(resolve(stage, stage->ring, wants, 10).kind, ERROR_NONE);
    }
    KeyWant again = want("acme", 0, 0);
    Resolved resolved = {0};
    keyring_resolve(stage->ring, &again, 1, on_resolved, &resolved);
    assert_false(resolved.done); // it had to make room
    assert_true(run_for(&stage->fx->loop, &resolved.done, true, WAIT_MS));
    assert_int_equal(data_key_generation(again.key), 1);
    assert_non_null(first.key);
}

static void another_master_key_is_an_error_of_the_installation(void **state)
{
    Stage *stage = *state;
    assert_non_null(resolve_one(stage, stage->ring, want("acme", 1, 0)).key);
    MasterKey *wrong = make_master();
    Keyring *ring = keyring_new(stage->fx->pool, wrong, &(KeyringOptions){0});
    KeyWant one = want("acme", 1, 1);
    assert_int_equal(resolve(stage, ring, &one, 1).kind, ERROR_CONFIG);
    keyring_free(ring);
    master_key_free(wrong);
}

static void closing_the_pool_answers_what_is_under_way(void **state)
{
    Stage *stage = *state;
    KeyWant one = want("acme", 1, 0);
    Resolved resolved = {0};
    keyring_resolve(stage->ring, &one, 1, on_resolved, &resolved);
    keyring_free(TAKE(stage->ring));
    fixture_close_pool(stage->fx);
    assert_true(resolved.done);
    assert_int_equal(resolved.err.kind, ERROR_CANCELLED);
}

static void a_reader_cannot_create_a_key(void **state)
{
    Stage *stage = *state;
    KeyWant one = want("acme", 1, 1);
    assert_int_equal(resolve(stage, stage->ring, &one, 1).kind, ERROR_NONE);
    assert_null(one.key);
    one = want("acme", 1, 0);
    assert_int_equal(resolve(stage, stage->ring, &one, 1).kind, ERROR_CONFIG);
}

// A second program with the same master key file, and its keyring.
static Keyring *twin_ring(Stage *stage, MasterKey **ret_twin)
{
    char text[MASTER_KEY_FILE_SIZE];
    assert_true(master_key_print(stage->master, &(MasterKeyChange){0}, text, NULL));
    *ret_twin = master_key_parse(str_from(text), NULL);
    return keyring_new(stage->fx->pool, *ret_twin, &(KeyringOptions){0});
}

typedef struct Epoch {
    char text[EPOCH_FILE_SIZE];
    EpochInfo info;
    char id[KEY_ID_SIZE];
} Epoch;

static Epoch make_epoch(Stage *stage, uint32_t number)
{
    Epoch made;
    epoch_key_make(stage->master, number, 1764000000, made.text, &made.info);
    key_id_print(made.info.id, made.id);
    return made;
}

static bool on_refresh_hold(void *ctx, MasterKey *master, Error *err)
{
    const Epoch *epoch = ctx;
    Str text = str_from(epoch->text);
    return master_epochs_set(master, &text, 1, str_from(epoch->id), err);
}

static void a_new_epoch_key_is_noticed_by_the_first_data_key_of_it(void **state)
{
    Stage *stage = *state;
    MasterKey *twin;
    Keyring *ring = twin_ring(stage, &twin);
    Epoch epoch = make_epoch(stage, 1);
    assert_true(on_refresh_hold(&epoch, stage->master, NULL));
    assert_non_null(resolve_one(stage, stage->ring, want("acme", 1, 0)).key);
    assert_string_equal(
        admin_value(
            stage->fx->admin, "SELECT encode(substr(wrapped, 1, 6), 'hex') FROM keys.data_keys"),
        arena_printf(stage->arena, "0102%s", epoch.id));
    // Not in its folder: an error that names it, and may end by itself.
    KeyWant one = want("acme", 1, 1);
    Error err = resolve(stage, ring, &one, 1);
    assert_int_equal(err.kind, ERROR_TRANSIENT);
    assert_non_null(strstr(err.text, epoch.id));
    master_epochs_source(twin, on_refresh_hold, &epoch);
    assert_non_null(resolve_one(stage, ring, want("acme", 1, 1)).key);
    keyring_free(ring);
    master_key_free(twin);
}

static void nothing_is_made_under_what_another_epoch_key_has_replaced(void **state)
{
    Stage *stage = *state;
    MasterKey *twin;
    Keyring *ring = twin_ring(stage, &twin);
    Epoch epoch = make_epoch(stage, 1);
    admin_exec(
        stage->fx->admin,
        arena_printf(
            stage->arena, "INSERT INTO keys.epochs (number, key_id) VALUES (1, '\\x%s')",
            epoch.id));
    KeyWant one = want("acme", 1, 0); // by the master key: it has not heard of epochs
    Error err = resolve(stage, ring, &one, 1);
    assert_int_equal(err.kind, ERROR_TRANSIENT);
    assert_non_null(strstr(err.text, "STENTOR_EPOCH_KEYS_DIR"));
    master_epochs_source(twin, on_refresh_hold, &epoch);
    assert_non_null(resolve_one(stage, ring, want("acme", 1, 0)).key);
    // The next epoch closes this one.
    admin_exec(stage->fx->admin, "UPDATE keys.epochs SET closed_at = now()");
    one = want("acme", 2, 0);
    assert_int_equal(resolve(stage, ring, &one, 1).kind, ERROR_TRANSIENT);
    Epoch next = make_epoch(stage, 2);
    master_epochs_source(twin, on_refresh_hold, &next); // its file comes before its row
    assert_non_null(resolve_one(stage, ring, want("acme", 2, 0)).key);
    keyring_free(ring);
    master_key_free(twin);
}

// A want whose owner had another subject under an older hash key.
static KeyWant want_of_before(int person, int older)
{
    KeyWant result = want("acme", person, 0);
    memcpy(result.older[0], want("acme", older, 0).subject, sizeof result.older[0]);
    result.older_count = 1;
    return result;
}

static void a_key_of_before_the_rotation_of_the_hash_key_is_taken(void **state)
{
    Stage *stage = *state;
    KeyWant before = resolve_one(stage, stage->ring, want("acme", 1, 0));
    KeyWant wants[] = {want_of_before(101, 1), want_of_before(102, 2), want("acme", 3, 0)};
    assert_int_equal(resolve(stage, stage->other, wants, 3).kind, ERROR_NONE);
    assert_true(is_same_key(before.key, wants[0].key));
    assert_true(is_same_key(wants[0].key, before.key));
    assert_string_equal(count_rows(stage), "3"); // that one, and new ones for the two without
    assert_string_equal(
        admin_value(
            stage->fx->admin, "SELECT string_agg(convert_from(trim(trailing '\\000'::bytea from "
                              "subject), 'UTF8'), ' ' ORDER BY subject)"
                              " FROM keys.data_keys"),
        "acme-1 acme-102 acme-3");
    assert_int_equal(resolve(stage, stage->other, wants, 3).kind, ERROR_NONE); // from the cache
    assert_true(is_same_key(before.key, wants[0].key));
}

static void a_key_that_was_destroyed_before_the_rotation_comes_not_back(void **state)
{
    Stage *stage = *state;
    (void)resolve_one(stage, stage->ring, want("acme", 1, 0));
    admin_exec(stage->fx->admin, "UPDATE keys.data_keys SET wrapped = NULL, destroyed_at = now()");
    KeyWant after = resolve_one(stage, stage->other, want_of_before(101, 1));
    assert_non_null(after.key);
    assert_int_equal(data_key_generation(after.key), 1);
    assert_string_equal(count_rows(stage), "2");
}

static void a_key_destroyed_since_is_made_again_under_its_own_subject(void **state)
{
    Stage *stage = *state;
    (void)resolve_one(stage, stage->ring, want("acme", 101, 0));
    admin_exec(stage->fx->admin, "UPDATE keys.data_keys SET wrapped = NULL, destroyed_at = now()");
    KeyWant after = resolve_one(stage, stage->other, want_of_before(101, 1));
    assert_int_equal(data_key_generation(after.key), 2);
}

static void nothing_is_made_under_a_retired_master_key(void **state)
{
    Stage *stage = *state;
    char hex[2 * KEY_CHECK_LEN + 1];
    char sql[512];
    hex_encode(master_key_info(stage->master, KEY_MASTER, 0)->check, KEY_CHECK_LEN, hex);
    snprintf(
        sql, sizeof sql,
        "INSERT INTO keys.master_keys (kind, key_id, check_value, retired_at)"
        " VALUES ('master', '\\x%.8s', '\\x%s', now())",
        hex, hex);
    admin_exec(stage->fx->admin, sql);
    KeyWant one = want("acme", 1, 0);
    Error err = resolve(stage, stage->ring, &one, 1);
    admin_exec(stage->fx->admin, "TRUNCATE keys.master_keys");
    assert_int_equal(err.kind, ERROR_TRANSIENT);
    assert_non_null(strstr(err.text, "the master key was retired"));
    assert_string_equal(count_rows(stage), "0");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_new_subject_gets_a_key_and_a_row),
        TEST(the_key_is_found_again_by_another_ring),
        TEST(a_ring_that_makes_none_finds_what_is_there),
        TEST(a_cached_key_is_given_inside_the_call),
        TEST(a_batch_with_repeats_and_tenants_is_resolved_at_once),
        TEST(known_and_new_keys_come_together),
        TEST(a_destroyed_key_is_forgotten_and_the_next_is_another),
        TEST(two_rings_agree_on_one_key),
        TEST(a_new_key_is_on_the_disk_before_it_is_given),
        TEST(a_key_of_another_tenant_is_not_found),
        TEST(a_want_that_names_no_tenant_has_no_key),
        TEST(the_cache_keeps_its_maximum),
        TEST(another_master_key_is_an_error_of_the_installation),
        TEST(a_new_epoch_key_is_noticed_by_the_first_data_key_of_it),
        TEST(nothing_is_made_under_what_another_epoch_key_has_replaced),
        TEST(a_key_of_before_the_rotation_of_the_hash_key_is_taken),
        TEST(a_key_that_was_destroyed_before_the_rotation_comes_not_back),
        TEST(a_key_destroyed_since_is_made_again_under_its_own_subject),
        TEST(nothing_is_made_under_a_retired_master_key),
        TEST(closing_the_pool_answers_what_is_under_way),
        cmocka_unit_test_setup_teardown(a_reader_cannot_create_a_key, set_up_reader, tear_down),
    };
    return cmocka_run_group_tests(tests, migrate_once, NULL);
}
