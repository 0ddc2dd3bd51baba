// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <string.h>

#include "common/codec/event.h"
#include "services/gateway/subscriptions/subscription_json.h"

#define URL "\"target_url\":\"https://hooks.example.com/stentor\""

enum { NOW_US = 1000000 };

typedef struct World {
    Arena *arena;
    HttpGuard guard;
    WebhookSubscription entry;
    GuardedUrl url;
    Problem problem;
} World;

static int set_up(void **state)
{
    static World world;
    world = (World){.arena = arena_new(0), .guard = {.tenant = true}};
    stentor__v1__webhook_subscription__init(&world.entry);
    *state = &world;
    return 0;
}

static int tear_down(void **state)
{
    World *world = *state;
    arena_free(world->arena);
    return 0;
}

// The name of the first field that is wrong; empty: none.
static const char *take(World *world, const char *text)
{
    ApiBody body = {0};
    stentor__v1__webhook_subscription__init(&world->entry);
    bool ok = api_body_parse(&body, str_from(text), world->arena) &&
              subscription_take(&body, &world->guard, &world->entry, &world->url);
    world->problem = body.problem;
    const char *field = ok ? "" : arena_cstr(world->arena, str_from(body.problem.field));
    api_body_free(&body);
    return field;
}

static void what_is_not_named_has_its_default(void **state)
{
    World *world = *state;
    assert_string_equal(take(world, "{\"name\":\" shop \"," URL "}"), "");
    assert_string_equal(world->entry.name, "shop");
    assert_string_equal(world->url.host, "hooks.example.com");
    assert_int_equal(world->entry.n_events, 0);
    json_t *shown = subscription_json(&world->entry, NOW_US);
    assert_int_equal(json_integer_value(json_object_get(shown, "rate_per_s")), 25);
    assert_int_equal(json_integer_value(json_object_get(shown, "in_flight")), 8);
    assert_int_equal(json_integer_value(json_object_get(shown, "disable_after")), 20);
    assert_true(json_is_false(json_object_get(shown, "in_order")));
    assert_null(json_object_get(shown, "state_reason"));
    json_decref(shown);
}

static void what_is_named_is_taken(void **state)
{
    World *world = *state;
    const char *text = "{\"name\":\"shop\"," URL
                       ",\"events\":[\"notification.*\"],\"channels\":[\"sms\",\"push\"],"
                       "\"categories\":[\"security\"],\"rate_per_s\":7,\"in_flight\":1,\"disable_"
                       "after\":3,\"in_order\":true}";
    assert_string_equal(take(world, text), "");
    const WebhookSubscription *entry = &world->entry;
    assert_string_equal(entry->events[0], "notification.*");
    assert_int_equal(entry->n_channels, 2);
    assert_int_equal(entry->channels[1], STENTOR__V1__CHANNEL__CHANNEL_PUSH);
    assert_int_equal(entry->categories[0], STENTOR__V1__CATEGORY__CATEGORY_SECURITY);
    assert_int_equal(entry->rate_per_s, 7);
    assert_int_equal(entry->in_flight, 1);
    assert_int_equal(entry->disable_after, 3);
    assert_true(entry->in_order);
}

static void a_wrong_field_is_named(void **state)
{
    World *world = *state;
    static const struct {
        const char *text, *field;
    } rows[] = {
        {"{" URL "}", "name"},
        {"{\"name\":\"a\\nb\"," URL "}", "name"},
        {"{\"name\":\"a\"}", "target_url"},
        {"{\"name\":\"a\",\"target_url\":\"http://hooks.example.com/\"}", "target_url"},
        {"{\"name\":\"a\",\"target_url\":\"https://10.0.0.1/\"}", "target_url"},
        {"{\"name\":\"a\"," URL ",\"events\":[\"notification.sent\",\"sent\"]}", "events[1]"},
        {"{\"name\":\"a\"," URL ",\"events\":[\"\"]}", "events[0]"},
        {"{\"name\":\"a\"," URL ",\"channels\":[null]}", "channels[0]"},
        {"{\"name\":\"a\"," URL ",\"categories\":[\"gossip\"]}", "categories[0]"},
        {"{\"name\":\"a\"," URL ",\"in_flight\":33}", "in_flight"},
        {"{\"name\":\"a\"," URL ",\"secret\":\"whsec_AA==\"}", "secret"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_string_equal(take(world, rows[i].text), rows[i].field);
        assert_int_equal(world->problem.status, 422);
    }
}

static void an_operator_may_allow_this_machine(void **state)
{
    World *world = *state;
    const char *text = "{\"name\":\"a\",\"target_url\":\"http://127.0.0.1:9000/\"}";
    assert_string_equal(take(world, text), "target_url");
    world->guard.allow_loopback = true;
    assert_string_equal(take(world, text), "");
    assert_true(world->url.is_address);
}

static void a_secret_is_shown_by_its_times_while_it_signs(void **state)
{
    World *world = *state;
    Stentor__V1__WebhookSecret first = STENTOR__V1__WEBHOOK_SECRET__INIT;
    Stentor__V1__WebhookSecret second = STENTOR__V1__WEBHOOK_SECRET__INIT;
    Stentor__V1__WebhookSecret *both[] = {&first, &second};
    first.created_at_us = 2 * NOW_US;
    second.created_at_us = NOW_US;
    second.not_after_us = 5 * NOW_US;
    world->entry.secrets = both;
    world->entry.n_secrets = 2;
    json_t *during = subscription_json(&world->entry, 4 * NOW_US);
    json_t *after = subscription_json(&world->entry, 5 * NOW_US);
    assert_int_equal(json_array_size(json_object_get(during, "secrets")), 2);
    const json_t *shown = json_array_get(json_object_get(during, "secrets"), 1);
    assert_string_equal(
        json_string_value(json_object_get(shown, "not_after")), "1970-01-01T00:00:05.000000Z");
    assert_int_equal(json_array_size(json_object_get(after, "secrets")), 1);
    json_decref(during);
    json_decref(after);
}

static void each_state_has_its_name(void **state)
{
    World *world = *state;
    assert_string_equal(subscription_state_name(&world->entry), "active");
    world->entry.state = STENTOR__V1__WEBHOOK_STATE__WEBHOOK_STATE_DISABLED;
    assert_string_equal(subscription_state_name(&world->entry), "disabled");
    world->entry.state = STENTOR__V1__WEBHOOK_STATE__WEBHOOK_STATE_FAILING;
    assert_string_equal(subscription_state_name(&world->entry), "failing");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_not_named_has_its_default),
        TEST(what_is_named_is_taken),
        TEST(a_wrong_field_is_named),
        TEST(an_operator_may_allow_this_machine),
        TEST(a_secret_is_shown_by_its_times_while_it_signs),
        TEST(each_state_has_its_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
