// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <string.h>

#include "common/codec/event.h"
#include "common/config/webhook_subscription.h"

#define ID "whs_01M8CV94BD1WA5N61NYRNKS9C5"
#define OTHER_ID "whs_01M8CV94BD1WA5N61NYRNKS9C6"

enum { NOW_US = 1000000, DAY_US = 24 * 3600 };

typedef struct World {
    Arena *arena;
    MasterKey *master;
    WebhookSubscription entry;
    Error err;
} World;

static int set_up(void **state)
{
    static World world;
    char text[132];
    world = (World){.arena = arena_new(0)};
    master_key_generate(text);
    world.master = master_key_parse(str_from(text), &world.err);
    stentor__v1__webhook_subscription__init(&world.entry);
    world.entry.tenant = pb_borrow("acme");
    world.entry.id = pb_borrow(ID);
    world.entry.target_url = pb_borrow("https://hooks.example.com/");
    *state = &world;
    return 0;
}

static int tear_down(void **state)
{
    World *world = *state;
    master_key_free(world->master);
    arena_free(world->arena);
    return 0;
}

static Str packed(const World *world)
{
    Str payload = STR_EMPTY;
    assert_true(event_pack(&world->entry.base, world->arena, &payload, NULL));
    return payload;
}

static void an_entry_is_its_tenants_and_has_an_id_and_an_address(void **state)
{
    World *world = *state;
    Str payload = packed(world);
    const WebhookSubscription *read =
        webhook_subscription_read(STR("acme"), payload, world->arena, &world->err);
    assert_non_null(read);
    assert_string_equal(read->id, ID);
    assert_null(webhook_subscription_read(STR("globex"), payload, world->arena, &world->err));
    assert_string_equal(world->err.text, "the entry's tenant is not the subject's");
    assert_null(webhook_subscription_read(STR("acme"), STR("\xff"), world->arena, &world->err));
    assert_int_equal(world->err.kind, ERROR_PERMANENT);
    world->entry.id = pb_borrow("whs_1");
    assert_null(webhook_subscription_read(STR("acme"), packed(world), world->arena, &world->err));
    world->entry.id = pb_borrow(ID);
    world->entry.target_url = pb_borrow("");
    assert_null(webhook_subscription_read(STR("acme"), packed(world), world->arena, &world->err));
}

// One that older releases stored has no state.
static void it_is_active_unless_it_was_turned_off(void **state)
{
    World *world = *state;
    assert_true(webhook_is_active(&world->entry));
    world->entry.state = STENTOR__V1__WEBHOOK_STATE__WEBHOOK_STATE_ACTIVE;
    assert_true(webhook_is_active(&world->entry));
    world->entry.state = STENTOR__V1__WEBHOOK_STATE__WEBHOOK_STATE_DISABLED;
    assert_false(webhook_is_active(&world->entry));
    world->entry.state = STENTOR__V1__WEBHOOK_STATE__WEBHOOK_STATE_FAILING;
    assert_false(webhook_is_active(&world->entry));
}

static void a_filter_is_a_status_or_all_of_them(void **state)
{
    (void)state;
    assert_true(webhook_is_filter(STR("notification.*")));
    assert_true(webhook_is_filter(STR("notification.sent")));
    assert_true(webhook_is_filter(STR("notification.complained")));
    assert_false(webhook_is_filter(STR("notification.")));
    assert_false(webhook_is_filter(STR("notification.send")));
    assert_false(webhook_is_filter(STR("*")));
    assert_false(webhook_is_filter(STR("sent")));
    assert_false(webhook_is_filter(STR("")));
}

// The text of what opens under the tenant's key; empty: it does not.
static const char *open_text(World *world, size_t i)
{
    DataKey *key = data_key_for_tenant(world->master, STR("acme"));
    Str text = STR_EMPTY;
    bool ok = webhook_secret_open(
        key, &world->entry, world->entry.secrets[i], world->arena, &text, &world->err);
    data_key_free(key);
    return ok ? arena_cstr(world->arena, text) : "";
}

static void a_secret_is_sealed_for_its_subscription(void **state)
{
    World *world = *state;
    char text[WEBHOOK_SECRET_SIZE];
    webhook_secret_add(&world->entry, world->master, NOW_US, 0, world->arena, text);
    assert_int_equal(world->entry.n_secrets, 1);
    assert_int_equal(strlen(text), 6 + 44);
    assert_int_equal(strncmp(text, "whsec_", 6), 0);
    assert_string_equal(open_text(world, 0), text);
    world->entry.id = pb_borrow(OTHER_ID);
    assert_string_equal(open_text(world, 0), "");
    assert_int_equal(world->err.kind, ERROR_PERMANENT);
}

static void the_secret_before_signs_until_the_overlap_ends(void **state)
{
    World *world = *state;
    char first[WEBHOOK_SECRET_SIZE], second[WEBHOOK_SECRET_SIZE], third[WEBHOOK_SECRET_SIZE];
    WebhookSubscription *entry = &world->entry;
    webhook_secret_add(entry, world->master, NOW_US, 0, world->arena, first);
    webhook_secret_add(entry, world->master, NOW_US, DAY_US, world->arena, second);
    assert_string_not_equal(first, second);
    assert_int_equal(entry->n_secrets, 2);
    assert_string_equal(open_text(world, 0), second);
    assert_string_equal(open_text(world, 1), first);
    assert_true(webhook_secret_signs(entry->secrets[0], NOW_US + 10 * DAY_US));
    assert_true(webhook_secret_signs(entry->secrets[1], NOW_US + DAY_US - 1));
    assert_false(webhook_secret_signs(entry->secrets[1], NOW_US + DAY_US));
    webhook_secret_add(entry, world->master, NOW_US, DAY_US, world->arena, third);
    assert_int_equal(entry->n_secrets, 2); // at most two: the first one ends early
    assert_string_equal(open_text(world, 1), second);
    webhook_secret_add(entry, world->master, NOW_US, 0, world->arena, third);
    assert_int_equal(entry->n_secrets, 1); // a leaked one ends at once
}

// After `stentor master-key add` and `use`, and after `remove`.
static void a_secret_that_is_sealed_again_outlives_the_master_key_of_before(void **state)
{
    World *world = *state;
    char text[WEBHOOK_SECRET_SIZE], added[MASTER_KEY_FILE_SIZE], used[MASTER_KEY_FILE_SIZE];
    char without[MASTER_KEY_FILE_SIZE], id[KEY_ID_SIZE], old_id[KEY_ID_SIZE];
    webhook_secret_add(&world->entry, world->master, NOW_US, 0, world->arena, text);
    assert_true(
        master_key_print(world->master, &(MasterKeyChange){.add = KEY_MASTER}, added, &world->err));
    MasterKey *both = master_key_parse(str_from(added), &world->err);
    assert_int_equal(master_key_count(both, KEY_MASTER), 2);
    key_id_print(master_key_info(both, KEY_MASTER, 0)->check, old_id);
    key_id_print(master_key_info(both, KEY_MASTER, 1)->check, id);
    assert_true(master_key_print(both, &(MasterKeyChange){.first = id}, used, &world->err));
    MasterKey *rotated = master_key_parse(str_from(used), &world->err);
    assert_true(
        master_key_print(rotated, &(MasterKeyChange){.without = old_id}, without, &world->err));
    MasterKey *before = world->master;
    MasterKey *after = master_key_parse(str_from(without), &world->err);
    world->master = after;
    assert_string_equal(open_text(world, 0), ""); // not yet
    webhook_secrets_seal_again(&world->entry, rotated, world->arena);
    assert_string_equal(open_text(world, 0), text);
    webhook_secrets_seal_again(&world->entry, before, world->arena); // does not open it
    assert_string_equal(open_text(world, 0), text);
    master_key_free(both);
    master_key_free(rotated);
    master_key_free(before);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_entry_is_its_tenants_and_has_an_id_and_an_address),
        TEST(it_is_active_unless_it_was_turned_off),
        TEST(a_filter_is_a_status_or_all_of_them),
        TEST(a_secret_is_sealed_for_its_subscription),
        TEST(the_secret_before_signs_until_the_overlap_ends),
        TEST(a_secret_that_is_sealed_again_outlives_the_master_key_of_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
