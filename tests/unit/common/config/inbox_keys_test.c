// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <string.h>

#include "common/codec/event.h"
#include "common/config/inbox_keys.h"

#define NOW_US INT64_C(1795000000000000)

static const char FIRST[] = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n"
                            "ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1eff\n";
static const char OTHER[] = "ee0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n"
                            "ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1eff\n";

typedef struct World {
    Arena *arena;
    MasterKey *master;
    InboxKeys *known;
    Stentor__V1__InboxKeys entry;
    char secret[INBOX_SECRET_SIZE];
} World;

static char TENANT[] = "acme";

static int set_up(void **state)
{
    static World world;
    world = (World){.arena = arena_new(0), .master = master_key_parse(str_from(FIRST), NULL)};
    assert_non_null(world.master);
    world.known = inbox_keys_new(world.master);
    stentor__v1__inbox_keys__init(&world.entry);
    world.entry.tenant = TENANT;
    *state = &world;
    return 0;
}

static int tear_down(void **state)
{
    World *world = *state;
    inbox_keys_free(world->known);
    master_key_free(world->master);
    arena_free(world->arena);
    return 0;
}

static Str pack(World *world)
{
    Str packed;
    assert_true(event_pack(&world->entry.base, world->arena, &packed, NULL));
    return packed;
}

static const char *add(World *world)
{
    return inbox_keys_add(&world->entry, world->master, NOW_US, world->arena, world->secret)->id;
}

static void a_stored_key_is_known_with_its_secret(void **state)
{
    World *world = *state;
    const char *first = add(world);
    char secret[INBOX_SECRET_SIZE];
    memcpy(secret, world->secret, sizeof secret);
    const char *second = add(world);
    assert_true(inbox_keys_put(world->known, STR("acme"), pack(world), NULL));
    const InboxKeyKnown *known = inbox_keys_find(world->known, str_from(first));
    assert_non_null(known);
    assert_string_equal(known->tenant, "acme");
    assert_string_equal(known->secret, secret);
    assert_string_equal(
        inbox_keys_find(world->known, str_from(second))->secret, world->secret);
    assert_int_equal(strlen(secret), 43);
    assert_string_not_equal(secret, world->secret);
}

static void a_removed_key_is_known_no_more(void **state)
{
    World *world = *state;
    const char *first = add(world), *second = add(world);
    assert_true(inbox_keys_put(world->known, STR("acme"), pack(world), NULL));
    assert_true(inbox_keys_remove(&world->entry, str_from(first)));
    assert_false(inbox_keys_remove(&world->entry, str_from(first)));
    assert_true(inbox_keys_put(world->known, STR("acme"), pack(world), NULL));
    assert_null(inbox_keys_find(world->known, str_from(first)));
    assert_non_null(inbox_keys_find(world->known, str_from(second)));
    assert_true(inbox_keys_put(world->known, STR("acme"), STR_EMPTY, NULL));
    assert_null(inbox_keys_find(world->known, str_from(second)));
}

static void another_tenant_s_keys_stay(void **state)
{
    World *world = *state;
    const char *id = add(world);
    assert_true(inbox_keys_put(world->known, STR("acme"), pack(world), NULL));
    assert_true(inbox_keys_put(world->known, STR("globex"), STR_EMPTY, NULL));
    assert_non_null(inbox_keys_find(world->known, str_from(id)));
    Error err = {0};
    assert_false(inbox_keys_put(world->known, STR("globex"), pack(world), &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
    assert_string_equal(inbox_keys_find(world->known, str_from(id))->tenant, "acme");
}

static void what_is_no_entry_changes_nothing(void **state)
{
    World *world = *state;
    const char *id = add(world);
    Error err = {0};
    assert_true(inbox_keys_put(world->known, STR("acme"), pack(world), NULL));
    assert_false(inbox_keys_put(world->known, STR("acme"), STR("\xff\xff"), &err));
    assert_non_null(inbox_keys_find(world->known, str_from(id)));
    Stentor__V1__InboxKey *twice[] = {world->entry.keys[0], world->entry.keys[0]};
    world->entry.keys = twice;
    world->entry.n_keys = 2;
    assert_false(inbox_keys_are_whole(&world->entry));
    world->entry.n_keys = 0;
    assert_false(inbox_keys_are_whole(&world->entry));
}

static void a_secret_of_another_master_key_signs_nothing(void **state)
{
    World *world = *state;
    MasterKey *other = master_key_parse(str_from(OTHER), NULL);
    Error err = {0};
    Stentor__V1__InboxKey *key =
        inbox_keys_add(&world->entry, other, NOW_US, world->arena, world->secret);
    assert_false(inbox_keys_put(world->known, STR("acme"), pack(world), &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
    assert_null(inbox_keys_find(world->known, str_from(key->id)));
    master_key_free(other);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_stored_key_is_known_with_its_secret),
        TEST(a_removed_key_is_known_no_more),
        TEST(another_tenant_s_keys_stay),
        TEST(what_is_no_entry_changes_nothing),
        TEST(a_secret_of_another_master_key_signs_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
