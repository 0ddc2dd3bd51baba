// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "common/codec/event.h"
#include "common/routing/routes.h"

#define TENANT STR("acme")

typedef struct World {
    Routes *routes;
    Arena *arena;
} World;

static int begin(void **state)
{
    World *world = xcalloc(1, sizeof *world);
    world->routes = routes_new();
    world->arena = arena_new(0);
    *state = world;
    return 0;
}

static int end(void **state)
{
    World *world = *state;
    routes_free(world->routes);
    arena_free(world->arena);
    free(world);
    return 0;
}

static RouteEntry *new_route(World *world, const char *tenant, const char *key)
{
    RouteEntry *route = arena_alloc(world->arena, sizeof *route);
    stentor__v1__route__init(route);
    route->tenant = pb_borrow(tenant);
    route->key = pb_borrow(key);
    route->vendors = arena_array(world->arena, 10, sizeof *route->vendors);
    return route;
}

static Stentor__V1__RouteVendor *add(
    World *world, RouteEntry *route, const char *vendor, uint32_t step, uint32_t weight)
{
    Stentor__V1__RouteVendor *one = arena_alloc(world->arena, sizeof *one);
    stentor__v1__route_vendor__init(one);
    one->vendor = pb_borrow(vendor);
    one->step = step;
    one->weight = weight;
    route->vendors[route->n_vendors++] = one;
    return one;
}

static bool put(World *world, const RouteEntry *route, Error *err)
{
    Str payload;
    assert_true(event_pack(&route->base, world->arena, &payload, NULL));
    return routes_changed(
        world->routes, str_from(route->tenant), str_from(route->key), payload, err);
}

static void put_good(World *world, const RouteEntry *route)
{
    Error err = {0};
    if (!put(world, route, &err)) {
        fail_msg("%s", err.text);
    }
}

static RouteChoice choose(World *world, const RouteQuestion *question)
{
    RouteChoice choice;
    RouteQuestion asked = *question;
    asked.tenant = TENANT;
    asked.channel = CHANNEL_EMAIL;
    asked.notification_id = asked.notification_id.len > 0 ? asked.notification_id : STR("ntf_1");
    routes_choose(world->routes, &asked, &choice);
    return choice;
}

static const char *chosen(World *world, const RouteQuestion *question)
{
    RouteChoice choice = choose(world, question);
    return choice.route == NULL ? "" : choice.route->key;
}

static void put_smtp(World *world, const char *tenant, const char *key, uint32_t position)
{
    RouteEntry *route = new_route(world, tenant, key);
    route->position = position;
    add(world, route, "smtp", 0, 0);
    put_good(world, route);
}

static void the_tenant_s_own_routes_come_first_then_by_position_then_by_key(void **state)
{
    World *world = *state;
    assert_string_equal(chosen(world, &(RouteQuestion){0}), "");
    put_smtp(world, "platform", "all", 0);
    assert_string_equal(chosen(world, &(RouteQuestion){0}), "all");
    put_smtp(world, "acme", "late", 5);
    assert_string_equal(chosen(world, &(RouteQuestion){0}), "late");
    put_smtp(world, "acme", "b", 2);
    put_smtp(world, "acme", "a", 2);
    put_smtp(world, "other", "first", 0);
    assert_string_equal(chosen(world, &(RouteQuestion){0}), "a");
    assert_true(routes_changed(world->routes, TENANT, STR("a"), STR_EMPTY, NULL));
    assert_string_equal(chosen(world, &(RouteQuestion){0}), "b");
}

static void a_route_fits_by_category_domain_and_country(void **state)
{
    World *world = *state;
    put_smtp(world, "acme", "rest", 9);
    RouteEntry *codes = new_route(world, "acme", "codes");
    codes->category = STENTOR__V1__CATEGORY__CATEGORY_SECURITY;
    add(world, codes, "smtp", 0, 0);
    put_good(world, codes);
    RouteEntry *domain = new_route(world, "acme", "domain");
    domain->domain = pb_borrow("example.com");
    add(world, domain, "smtp", 0, 0);
    put_good(world, domain);
    RouteEntry *below = new_route(world, "acme", "below");
    below->domain = pb_borrow("*.example.com");
    add(world, below, "smtp", 0, 0);
    put_good(world, below);
    RouteEntry *german = new_route(world, "acme", "german");
    german->country = pb_borrow("DE");
    german->position = 1;
    add(world, german, "smtp", 0, 0);
    put_good(world, german);
    RouteEntry *off = new_route(world, "acme", "a-off");
    off->disabled = true;
    add(world, off, "smtp", 0, 0);
    put_good(world, off);
#define CHOSEN(...) chosen(world, &(RouteQuestion){__VA_ARGS__})
    assert_string_equal(CHOSEN(.category = CATEGORY_SECURITY), "codes");
    assert_string_equal(CHOSEN(.domain = STR("Example.COM")), "domain");
    assert_string_equal(CHOSEN(.domain = STR("mail.example.com")), "below");
    assert_string_equal(CHOSEN(.domain = STR("badexample.com")), "rest");
    assert_string_equal(CHOSEN(.country = STR("DE")), "german");
    assert_string_equal(CHOSEN(.country = STR("FR")), "rest");
}

static void without_a_route_nothing_is_picked_and_the_defaults_hold(void **state)
{
    RouteChoice choice = choose(*state, &(RouteQuestion){.category = CATEGORY_MARKETING});
    assert_null(choice.route);
    assert_int_equal(choice.count, 0);
    assert_int_equal(choice.rules.unknown, ROUTING_COUNT_AS_SENT);
    assert_int_equal(choice.rules.fallback_on, FALLBACK_DEFAULT);
}

static void a_route_s_rules_are_those_of_the_mail(void **state)
{
    World *world = *state;
    RouteEntry *route = new_route(world, "acme", "own");
    char *on[] = {pb_borrow("unsent"), pb_borrow("retry")};
    route->fallback_on = on;
    route->n_fallback_on = 2;
    route->unknown = pb_borrow("failover");
    route->settle_ms = 7000;
    add(world, route, "smtp", 0, 0);
    put_good(world, route);
    RouteChoice choice = choose(world, &(RouteQuestion){0});
    assert_int_equal(choice.rules.fallback_on, FALLBACK_UNSENT | FALLBACK_RETRY);
    assert_int_equal(choice.rules.unknown, ROUTING_FAILOVER);
    assert_int_equal(choice.rules.settle_ms, 7000);
    assert_string_equal(choice.picks[0].vendor.ptr, "smtp");
    assert_null(choice.picks[0].credential);
}

// ---- what is wrong in an entry ----

static void refuse(World *world, RouteEntry *route, const char *text)
{
    Error err = {0};
    assert_false(put(world, route, &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
    if (strstr(err.text, text) == NULL) {
        fail_msg("'%s' does not say '%s'", err.text, text);
    }
}

static void a_wrong_route_is_refused_with_its_field_and_the_earlier_one_stays(void **state)
{
    World *world = *state;
    put_smtp(world, "acme", "r", 3);
    refuse(world, new_route(world, "acme", "r"), "vendors: required");
    RouteEntry *route = new_route(world, "acme", "r");
    add(world, route, "pigeon", 0, 0);
    refuse(world, route, "vendors[0].vendor: 'pigeon'");
    route = new_route(world, "acme", "r");
    add(world, route, "smtp", 0, 0);
    add(world, route, "smtp", 1, 0);
    refuse(world, route, "vendors[1]: the same");
    route = new_route(world, "acme", "r");
    route->channel = STENTOR__V1__CHANNEL__CHANNEL_SMS;
    add(world, route, "smtp", 0, 0);
    refuse(world, route, "carries no sms");
    route = new_route(world, "acme", "r");
    add(world, route, "smtp", 0, 1001);
    refuse(world, route, "weight is 0 to 1000");
    const struct {
        const char *domain, *country, *unknown, *text;
        uint32_t max_vendors, settle_ms;
    } rows[] = {
        {"Example.com", "", "", "domain:", 0, 0}, {"com", "", "", "domain:", 0, 0},
        {"*.*.com", "", "", "domain:", 0, 0},     {"a..b", "", "", "domain:", 0, 0},
        {"", "de", "", "country:", 0, 0},         {"", "DEU", "", "country:", 0, 0},
        {"", "", "twice", "unknown:", 0, 0},      {"", "", "", "max_vendors:", 9, 0},
        {"", "", "", "settle_ms:", 0, 3600001},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        route = new_route(world, "acme", "r");
        add(world, route, "smtp", 0, 0);
        route->domain = pb_borrow(rows[i].domain);
        route->country = pb_borrow(rows[i].country);
        route->unknown = pb_borrow(rows[i].unknown);
        route->max_vendors = rows[i].max_vendors;
        route->settle_ms = rows[i].settle_ms;
        refuse(world, route, rows[i].text);
    }
    assert_int_equal(routes_get(world->routes, TENANT, STR("r"))->position, 3);
    Error err = {0};
    assert_false(routes_changed(world->routes, TENANT, STR("r"), STR("\xff\xff"), &err));
    assert_non_null(routes_get(world->routes, TENANT, STR("r")));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(the_tenant_s_own_routes_come_first_then_by_position_then_by_key),
        TEST(a_route_fits_by_category_domain_and_country),
        TEST(without_a_route_nothing_is_picked_and_the_defaults_hold),
        TEST(a_route_s_rules_are_those_of_the_mail),
        TEST(a_wrong_route_is_refused_with_its_field_and_the_earlier_one_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
