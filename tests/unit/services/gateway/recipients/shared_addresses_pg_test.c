// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/codec/hash.h"
#include "services/gateway/recipients/shared_addresses.h"
#include "tests/unit/common/db/migrated.h"
#include "tests/unit/common/db/pg_fixture.h"

typedef struct Scene {
    uv_loop_t loop;
    PGconn *admin;
    MasterKey *master;
    RecipientsApi api;
    char url[512];
    Arena *arena;
    SharedOwner *owners;
    size_t count;
    bool done;
} Scene;

static char master_text[132];

static void on_flag(void *ctx)
{
    bool *flag = ctx;
    *flag = true;
}

static int migrate_once(void **state)
{
    (void)state;
    master_key_generate(master_text);
    migrate_these(migrate_schemas);
    return 0;
}

// rcp_a has alice@example.com; rcp_z had zoe@example.com and gave it up.
static void plant(Scene *s, const char *recipient, const char *address, const char *status)
{
    uint8_t hash[ADDRESS_HASH_LEN];
    char hex[2 * ADDRESS_HASH_LEN + 1];
    address_hash(master_hash_key(s->master), STR("acme"), CHANNEL_EMAIL, str_from(address), hash);
    hex_encode(hash, sizeof hash, hex);
    admin_exec(
        s->admin, arena_printf(
                      s->arena,
                      "INSERT INTO people.addresses VALUES ('acme', '%s', 'email', decode('%s', "
                      "'hex'), '\\x01', '%s', true, true, NULL, 0)",
                      recipient, hex, status));
}

static int set_up(void **state)
{
    Scene *s = calloc(1, sizeof *s);
    uv_loop_init(&s->loop);
    s->arena = arena_new(0);
    s->admin = admin_connect();
    s->master = master_key_parse(str_from(master_text), NULL);
    admin_exec(s->admin, "TRUNCATE people.addresses");
    plant(s, "rcp_a", "alice@example.com", "active");
    plant(s, "rcp_z", "zoe@example.com", "revoked");
    url_with("&user=stentor_gateway", s->url, sizeof s->url);
    s->api.pool = db_pool_new(
        &s->loop,
        &(DbPoolOptions){.url = s->url, .application_name = "gateway-test", .connections = 1});
    s->api.keyring = keyring_new(s->api.pool, s->master, &(KeyringOptions){0});
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    Scene *s = *state;
    bool gone = false;
    keyring_free(s->api.keyring);
    db_pool_close(s->api.pool, on_flag, &gone);
    assert_true(run_for(&s->loop, &gone, true, WAIT_MS));
    PQfinish(s->admin);
    master_key_free(s->master);
    arena_free(s->arena);
    uv_run(&s->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&s->loop), 0);
    free(s);
    return 0;
}

static SharedOwner owner(Scene *s, const char *id, const char *address, AddressStatus status)
{
    PersonRecord *record = arena_zalloc(s->arena, sizeof *record);
    record->addresses = arena_array(s->arena, 2, sizeof *record->addresses);
    record->addresses[0] = (PersonAddress){
        .channel = CHANNEL_SMS, .address = STR("+4915112345678"), .status = ADDRESS_REVOKED};
    record->addresses[1] =
        (PersonAddress){.channel = CHANNEL_EMAIL, .address = str_from(address), .status = status};
    record->address_count = 2;
    return (SharedOwner){.id = str_from(id), .record = record};
}

static void on_rows(void *ctx, DbTxn *txn, const Error *err)
{
    Scene *s = ctx;
    assert_null(err);
    shared_addresses_read(db_txn_result(txn, 0), s->owners, s->count, s->arena);
    s->done = true;
}

static void ask(Scene *s, const char *tenant, SharedOwner *owners, size_t count)
{
    s->owners = owners;
    s->count = count;
    s->done = false;
    DbTxn *txn = db_txn_new(s->api.pool);
    db_txn_tenant(txn, str_from(tenant));
    assert_true(shared_addresses_ask(&s->api, str_from(tenant), owners, count, txn));
    db_txn_submit(txn, on_rows, s);
    assert_true(run_for(&s->loop, &s->done, true, WAIT_MS));
}

static void who_else_has_an_address_is_found_and_named(void **state)
{
    Scene *s = *state;
    char field[SHARED_FIELD_SIZE];
    char text[SHARED_TEXT_SIZE];
    SharedOwner owners[] = {
        owner(s, "rcp_a", "alice@example.com", ADDRESS_ACTIVE), // its own
        owner(s, "rcp_b", "alice@example.com", ADDRESS_ACTIVE),
        owner(s, "rcp_c", "zoe@example.com", ADDRESS_ACTIVE), // of one that gave it up
        {.id = STR("rcp_d"), .record = NULL},
    };
    ask(s, "acme", owners, 4);
    assert_int_equal(owners[0].other.len + owners[2].other.len + owners[3].other.len, 0);
    assert_true(str_eq(owners[1].other, STR("rcp_a")));
    shared_addresses_field(&owners[1], field);
    shared_addresses_text(&owners[1], text);
    assert_string_equal(field, "addresses[1].address");
    assert_string_equal(text, "recipient 'rcp_a' has this address too");
}

static void another_tenants_address_is_no_one_elses(void **state)
{
    Scene *s = *state;
    SharedOwner owners[] = {owner(s, "rcp_b", "alice@example.com", ADDRESS_ACTIVE)};
    ask(s, "beta", owners, 1);
    assert_int_equal(owners[0].other.len, 0);
}

static void of_addresses_that_all_were_revoked_nothing_is_asked(void **state)
{
    Scene *s = *state;
    SharedOwner owners[] = {owner(s, "rcp_b", "alice@example.com", ADDRESS_REVOKED)};
    DbTxn *txn = db_txn_new(s->api.pool);
    assert_false(shared_addresses_ask(&s->api, STR("acme"), owners, 1, txn));
    db_txn_abandon(txn);
}

static void of_two_in_one_import_the_later_names_the_earlier(void **state)
{
    Scene *s = *state;
    SharedOwner owners[] = {
        owner(s, "rcp_1", "new@example.com", ADDRESS_ACTIVE),
        owner(s, "rcp_2", "new@example.com", ADDRESS_REVOKED), // gives it up
        owner(s, "rcp_3", "new@example.com", ADDRESS_ACTIVE),
        owner(s, "rcp_1", "new@example.com", ADDRESS_ACTIVE), // the first once more
    };
    shared_addresses_among(&s->api, STR("acme"), owners, 4);
    assert_true(str_eq(owners[2].other, STR("rcp_1")));
    assert_int_equal(owners[2].at, 1);
    assert_int_equal(owners[0].other.len + owners[1].other.len + owners[3].other.len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            who_else_has_an_address_is_found_and_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(another_tenants_address_is_no_one_elses, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            of_addresses_that_all_were_revoked_nothing_is_asked, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            of_two_in_one_import_the_later_names_the_earlier, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, migrate_once, NULL);
}
