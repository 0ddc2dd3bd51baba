// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "common/events/meta.h"
#include "common/model/enums.h"
#include "common/webhooks/webhook_event.h"

#define NTF "ntf_01KAGTQ5M0000000000000000A"
#define WHS "whs_01KAGTQ5M0000000000000000A"

typedef struct World {
    Arena *arena;
    Stentor__V1__Meta meta;
    Stentor__V1__Attempt attempt;
    Stentor__V1__NotificationStatus status;
    Stentor__V1__WebhookSubscription subscription;
} World;

static int set_up(void **state)
{
    static World world;
    world.arena = arena_new(0);
    world.meta = meta_make(&(MetaSpec){
        .event_id = "eventeventeventevent01",
        .tenant = "acme",
        .notification_id = NTF,
        .correlation_id = "order-17",
        .at_us = INT64_C(1763648968320000)});
    stentor__v1__attempt__init(&world.attempt);
    stentor__v1__notification_status__init(&world.status);
    stentor__v1__webhook_subscription__init(&world.subscription);
    world.attempt.number = 1;
    world.attempt.vendor = pb_borrow("smtp");
    world.attempt.text = pb_borrow("250 OK");
    world.status.meta = &world.meta;
    world.status.channel = (Stentor__V1__Channel)CHANNEL_EMAIL;
    world.status.category = (Stentor__V1__Category)CATEGORY_BILLING;
    world.status.status = (Stentor__V1__Status)STATUS_SENT;
    world.status.reason = pb_borrow("why");
    world.status.address_hash = pb_data(STR("hashhashhash"));
    world.status.attempt = &world.attempt;
    *state = &world;
    return 0;
}

static int tear_down(void **state)
{
    arena_free(((World *)*state)->arena);
    return 0;
}

static bool wants_as(World *world, Category category)
{
    char type[WEBHOOK_TYPE_SIZE];
    webhook_type(&world->status, type);
    return webhook_wants(&world->subscription, &world->status, type, category);
}

static bool wants(World *world)
{
    return wants_as(world, (Category)world->status.category);
}

static void a_subscription_wants_what_each_of_its_filters_lets_through(void **state)
{
    World *world = *state;
    char *sent[] = {pb_borrow("notification.sent")}, *all[] = {pb_borrow("notification.*")};
    char *failed[] = {pb_borrow("notification.failed")};
    Stentor__V1__Channel sms[] = {(Stentor__V1__Channel)CHANNEL_SMS};
    Stentor__V1__Category billing[] = {(Stentor__V1__Category)CATEGORY_BILLING};
    assert_true(wants(world)); // no filter
    world->subscription.n_events = 1;
    world->subscription.events = sent;
    assert_true(wants(world));
    world->subscription.events = all;
    assert_true(wants(world));
    world->subscription.events = failed;
    assert_false(wants(world));
    world->subscription.n_events = 0;
    world->subscription.n_categories = 1;
    world->subscription.categories = billing;
    assert_true(wants(world));
    world->subscription.n_channels = 1;
    world->subscription.channels = sms;
    assert_false(wants(world));
}

static void a_filter_by_category_goes_by_the_notifications(void **state)
{
    World *world = *state;
    Stentor__V1__Category billing[] = {(Stentor__V1__Category)CATEGORY_BILLING};
    world->status.category = (Stentor__V1__Category)CATEGORY_NONE; // as a vendor reports it
    assert_true(wants_as(world, CATEGORY_NONE));
    world->subscription.n_categories = 1;
    world->subscription.categories = billing;
    assert_true(wants_as(world, CATEGORY_BILLING));
    assert_false(wants_as(world, CATEGORY_MARKETING));
    assert_false(wants_as(world, CATEGORY_NONE)); // not known
    billing[0] = (Stentor__V1__Category)CATEGORY_NONE;
    assert_false(wants_as(world, CATEGORY_NONE));
}

static void one_that_is_turned_off_wants_nothing(void **state)
{
    World *world = *state;
    world->subscription.state = STENTOR__V1__WEBHOOK_STATE__WEBHOOK_STATE_FAILING;
    assert_false(wants(world));
    world->subscription.state = STENTOR__V1__WEBHOOK_STATE__WEBHOOK_STATE_DISABLED;
    assert_false(wants(world));
    world->subscription.state = STENTOR__V1__WEBHOOK_STATE__WEBHOOK_STATE_ACTIVE;
    assert_true(wants(world));
    world->status.status = (Stentor__V1__Status)99; // of a newer release
    assert_false(wants(world));
}

static json_t *payload(World *world, const WebhookPlace *place)
{
    Str text = webhook_payload(&world->status, place, world->arena);
    assert_true(text.len > 0 && text.len < WEBHOOK_PAYLOAD_MAX);
    json_t *root = json_loadb(text.ptr, text.len, 0, NULL);
    assert_non_null(root);
    return root;
}

static const char *member(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

static void the_payload_says_what_the_status_says_and_no_address(void **state)
{
    World *world = *state;
    json_t *root = payload(world, &(WebhookPlace){0});
    const json_t *data = json_object_get(root, "data");
    assert_string_equal(member(root, "type"), "notification.sent");
    assert_string_equal(member(root, "timestamp"), "2025-11-20T14:29:28.320000Z");
    assert_string_equal(member(data, "id"), NTF);
    assert_string_equal(member(data, "category"), "billing");
    assert_string_equal(member(data, "correlation_id"), "order-17");
    assert_string_equal(member(json_object_get(data, "attempt"), "vendor"), "smtp");
    assert_null(json_object_get(data, "address_hash"));
    assert_null(json_object_get(data, "sequence"));
    json_decref(root);
}

static void in_order_it_names_its_place_and_the_event_before(void **state)
{
    World *world = *state;
    json_t *root = payload(world, &(WebhookPlace){17, STR("before")});
    const json_t *data = json_object_get(root, "data");
    assert_int_equal(json_integer_value(json_object_get(data, "sequence")), 17);
    assert_string_equal(member(data, "previous_id"), "before");
    json_decref(root);
    root = payload(world, &(WebhookPlace){17, STR_EMPTY});
    assert_true(json_is_null(json_object_get(json_object_get(root, "data"), "previous_id")));
    json_decref(root);
}

static void texts_are_left_out_of_one_that_would_be_too_long(void **state)
{
    World *world = *state;
    char *text = arena_alloc(world->arena, WEBHOOK_PAYLOAD_MAX + 1);
    memset(text, 'x', WEBHOOK_PAYLOAD_MAX);
    text[WEBHOOK_PAYLOAD_MAX] = '\0';
    world->status.reason = text;
    json_t *root = payload(world, &(WebhookPlace){0});
    assert_null(json_object_get(json_object_get(root, "data"), "reason"));
    json_decref(root);
    world->meta.correlation_id = text;
    assert_int_equal(webhook_payload(&world->status, &(WebhookPlace){0}, world->arena).len, 0);
}

static void the_same_status_makes_the_same_delivery_and_each_turn_its_own_event(void **state)
{
    World *world = *state;
    char id[WEBHOOK_DELIVERY_ID_SIZE], again[WEBHOOK_DELIVERY_ID_SIZE];
    BusOut first, second, later;
    webhook_delivery_id(STR(WHS), STR("eventeventeventevent01"), id);
    webhook_delivery_id(STR(WHS), STR("eventeventeventevent01"), again);
    assert_string_equal(id, again);
    assert_int_equal(strlen(id), 4 + EVENT_ID_LEN);
    Stentor__V1__WebhookDelivery delivery;
    stentor__v1__webhook_delivery__init(&delivery);
    delivery.meta = &world->meta;
    delivery.delivery_id = id;
    delivery.turn = 1;
    assert_true(webhook_event(&delivery, STR_EMPTY, world->arena, &first, NULL));
    assert_true(webhook_event(&delivery, STR_EMPTY, world->arena, &second, NULL));
    assert_true(str_eq(first.event_id, second.event_id));
    assert_string_equal(first.subject, "ntf.hook.acme");
    assert_true(
        webhook_deferred(&delivery, 5, "status 500", STR_EMPTY, world->arena, &later, NULL));
    assert_string_equal(later.subject, "ntf.deferred.hook.acme");
    assert_int_equal(delivery.turn, 2);
    assert_false(str_eq(str_from(delivery.meta->event_id), first.event_id));
    assert_false(str_eq(str_from(delivery.meta->event_id), later.event_id));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_subscription_wants_what_each_of_its_filters_lets_through),
        TEST(a_filter_by_category_goes_by_the_notifications),
        TEST(one_that_is_turned_off_wants_nothing),
        TEST(the_payload_says_what_the_status_says_and_no_address),
        TEST(in_order_it_names_its_place_and_the_event_before),
        TEST(texts_are_left_out_of_one_that_would_be_too_long),
        TEST(the_same_status_makes_the_same_delivery_and_each_turn_its_own_event),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
