// SPDX-License-Identifier: Apache-2.0
// Whose turn it is, without a server: what is let through to a claim is in
// tests/integration/webhooks.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "services/dispatcher/webhooks/hooks_internal.h"
#include "tests/unit/services/dispatcher/webhooks/subscriptions_stage.h"

enum { JOBS = 600, CALLS = 8, IN_FLIGHT = 2 };

typedef struct World {
    SubscriptionsStage stage;
    uv_loop_t loop;
    Hooks hooks;
    Stentor__V1__Meta meta;
    Stentor__V1__WebhookDelivery event;
    HookJob jobs[JOBS];
} World;

static void free_endpoint(void *value)
{
    free(((Endpoint *)value)->key);
    free(value);
}

static int set_up(void **state)
{
    World *world = xcalloc(1, sizeof *world);
    subscriptions_stage_open(&world->stage);
    (void)uv_loop_init(&world->loop);
    Hooks *hooks = &world->hooks;
    hooks->parts = (HooksParts){.loop = &world->loop, .calls = CALLS, .in_flight_max = CALLS};
    hooks->subscriptions = world->stage.subscriptions;
    hooks->tenants = map_new(free);
    hooks->endpoints = map_new(free_endpoint);
    (void)uv_timer_init(&world->loop, &hooks->starved_timer);
    stentor__v1__meta__init(&world->meta);
    stentor__v1__webhook_delivery__init(&world->event);
    world->meta.tenant = pb_borrow("acme");
    world->event.meta = &world->meta;
    world->event.subscription_id =
        arena_cstr(world->stage.arena, str_from(subscriptions_stage_id(&world->stage, 1)));
    for (size_t i = 0; i < JOBS; i++) {
        world->jobs[i] = (HookJob){.hooks = hooks, .event = &world->event};
    }
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    World *world = *state;
    uv_close((uv_handle_t *)&world->hooks.starved_timer, NULL);
    (void)uv_run(&world->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&world->loop), 0);
    map_free(world->hooks.endpoints);
    map_free(world->hooks.tenants);
    free((void *)world->hooks.starved);
    subscriptions_stage_close(&world->stage);
    free(world);
    return 0;
}

static const Subscription *subscribe(World *world, const char *tenant, unsigned number)
{
    subscriptions_stage_make(&world->stage, tenant, number);
    world->stage.entry.in_flight = IN_FLIGHT;
    assert_true(subscriptions_stage_put(&world->stage));
    return subscription_get(
        world->stage.subscriptions, str_from(tenant), str_from(world->stage.entry.id));
}

// ---- lists ----

static size_t taken, batches;

static void take_in_order(Hooks *hooks, HookJob *const *jobs, size_t count)
{
    World *world = (World *)(void *)((char *)hooks - offsetof(World, hooks));
    assert_in_range(count, 1, HOOK_BATCH_MAX);
    for (size_t i = 0; i < count; i++) {
        assert_ptr_equal(jobs[i], &world->jobs[taken++]);
    }
    batches++;
}

static void a_list_is_handed_over_in_its_order_a_batch_at_a_time(void **state)
{
    World *world = *state;
    JobList list = {0};
    taken = batches = 0;
    for (size_t i = 0; i < JOBS; i++) {
        job_list_push(&list, &world->jobs[i]);
    }
    assert_int_equal(list.count, JOBS);
    job_list_submit(&list, &world->hooks, take_in_order);
    assert_int_equal(taken, JOBS);
    assert_int_equal(batches, (JOBS + HOOK_BATCH_MAX - 1) / HOOK_BATCH_MAX);
    assert_int_equal(list.count, 0);
    assert_null(job_list_pop(&list));
}

// ---- places ----

static void endpoints_of_a_tenant_share_its_places_and_no_other_tenants(void **state)
{
    World *world = *state;
    Endpoint *first = endpoint_of(&world->hooks, subscribe(world, "acme", 1));
    const Endpoint *second = endpoint_of(&world->hooks, subscribe(world, "acme", 2));
    const Endpoint *others = endpoint_of(&world->hooks, subscribe(world, "globex", 3));
    assert_ptr_not_equal(first, second);
    assert_ptr_equal(first->tenant, second->tenant);
    assert_ptr_not_equal(first->tenant, others->tenant);
    first->tenant->in_hand = CALLS / HOOK_TENANT_PART - 1;
    assert_true(tenant_has_room(&world->hooks, second->tenant));
    first->tenant->in_hand++;
    assert_false(tenant_has_room(&world->hooks, second->tenant));
    assert_true(tenant_has_room(&world->hooks, others->tenant));
}

static void a_queue_has_four_places_for_each_post_on_the_way(void **state)
{
    World *world = *state;
    const Subscription *subscription = subscribe(world, "acme", 1);
    Endpoint *endpoint = endpoint_of(&world->hooks, subscription);
    for (size_t i = 0; i < (size_t)IN_FLIGHT * HOOK_QUEUE_FACTOR; i++) {
        assert_true(endpoint_take(endpoint, subscription, &world->jobs[i]));
        assert_ptr_equal(world->jobs[i].endpoint, endpoint);
    }
    assert_false(endpoint_take(endpoint, subscription, &world->jobs[JOBS - 1]));
    assert_null(world->jobs[JOBS - 1].endpoint);
}

// ---- turns ----

static Endpoint *with_one_waiting(World *world)
{
    const Subscription *subscription = subscribe(world, "acme", 1);
    Endpoint *endpoint = endpoint_of(&world->hooks, subscription);
    assert_true(endpoint_take(endpoint, subscription, &world->jobs[0]));
    return endpoint;
}

static void the_next_post_waits_for_a_place_at_its_endpoint(void **state)
{
    World *world = *state;
    Endpoint *endpoint = with_one_waiting(world);
    endpoint->posting = IN_FLIGHT;
    endpoint_pump(&world->hooks, endpoint);
    assert_int_equal(endpoint->queue.count, 1);
    assert_false(endpoint->starved); // the end of one of them is its turn
}

static void an_endpoint_that_did_not_answer_gets_one_post_at_a_time(void **state)
{
    World *world = *state;
    Endpoint *endpoint = with_one_waiting(world);
    endpoint->posting = 1;
    endpoint->probing = true;
    endpoint_pump(&world->hooks, endpoint);
    assert_int_equal(endpoint->queue.count, 1);
    assert_int_equal(endpoint->posting, 1);
}

static void a_tenant_at_its_part_of_the_posts_comes_back_in_a_moment(void **state)
{
    World *world = *state;
    Endpoint *endpoint = with_one_waiting(world);
    endpoint->tenant->posting = CALLS / HOOK_TENANT_PART;
    endpoint_pump(&world->hooks, endpoint);
    assert_int_equal(endpoint->queue.count, 1);
    assert_true(endpoint->starved);
    endpoint_pump(&world->hooks, endpoint);
    assert_int_equal(world->hooks.starved_count, 1); // once, however often it asks
    assert_in_range(uv_timer_get_due_in(&world->hooks.starved_timer), 1, 1000);
}

static void nothing_begins_while_the_process_stops(void **state)
{
    World *world = *state;
    Endpoint *endpoint = with_one_waiting(world);
    world->hooks.stopping = true;
    endpoint_pump(&world->hooks, endpoint);
    assert_int_equal(endpoint->queue.count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_list_is_handed_over_in_its_order_a_batch_at_a_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            endpoints_of_a_tenant_share_its_places_and_no_other_tenants, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_queue_has_four_places_for_each_post_on_the_way, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            the_next_post_waits_for_a_place_at_its_endpoint, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            an_endpoint_that_did_not_answer_gets_one_post_at_a_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_tenant_at_its_part_of_the_posts_comes_back_in_a_moment, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nothing_begins_while_the_process_stops, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
