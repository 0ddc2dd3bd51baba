// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/codec/event.h"
#include "common/events/meta.h"
#include "common/model/enums.h"
#include "common/webhooks/webhook_event.h"
#include "services/dispatcher/webhooks/match_event.h"

#define NTF "ntf_01KAGTQ5M0000000000000000A"
#define WHS "whs_01KAGTQ5M0000000000000000A"
#define EVENT "eventeventeventevent01"

enum { MADE_US = 5000, CHANGED_US = 9000 };

typedef struct World {
    Arena *arena;
    Stentor__V1__Meta meta;
    Stentor__V1__NotificationStatus status;
    WebhookSubscription entry;
    Subscription subscription;
    BusMessage message;
    Error err;
} World;

static int set_up(void **state)
{
    static World world;
    memset(&world, 0, sizeof world);
    world.arena = arena_new(0);
    world.meta = meta_make(
        &(MetaSpec){.event_id = EVENT, .tenant = "acme", .notification_id = NTF, .at_us = 1000});
    stentor__v1__notification_status__init(&world.status);
    stentor__v1__webhook_subscription__init(&world.entry);
    world.status.meta = &world.meta;
    world.status.channel = (Stentor__V1__Channel)CHANNEL_EMAIL;
    world.status.status = (Stentor__V1__Status)STATUS_SENT;
    world.entry.id = pb_borrow(WHS);
    world.entry.tenant = pb_borrow("acme");
    world.entry.created_at_us = MADE_US;
    world.subscription.entry = &world.entry;
    world.message.subject = STR("ntf.status.acme.email.sent");
    world.message.sequence = 17;
    *state = &world;
    return 0;
}

static int tear_down(void **state)
{
    arena_free(((World *)*state)->arena);
    return 0;
}

static const Stentor__V1__NotificationStatus *read(World *world)
{
    assert_true(
        event_pack(&world->status.base, world->arena, &world->message.payload, &world->err));
    return match_read(&world->message, world->arena, &world->err);
}

static void a_status_of_its_subjects_tenant_is_read(void **state)
{
    World *world = *state;
    const Stentor__V1__NotificationStatus *status = read(world);
    assert_non_null(status);
    assert_string_equal(status->meta->event_id, EVENT);
}

static void a_status_about_another_tenant_than_its_subjects_is_refused(void **state)
{
    World *world = *state;
    world->message.subject = STR("ntf.status.acme2.email.sent");
    assert_null(read(world));
    assert_int_equal(world->err.kind, ERROR_PERMANENT);
    assert_string_equal(world->err.text, "'meta.tenant' is 'acme', which is not the subject's");
}

static void a_status_without_an_id_is_refused(void **state)
{
    World *world = *state;
    world->meta.event_id = pb_borrow("");
    assert_null(read(world));
    assert_string_equal(world->err.text, "'meta.event_id' is missing");
}

static bool wants(World *world, Category category, int64_t stored_at_us)
{
    return match_wants(
        &world->subscription, &world->status, "notification.sent", category, stored_at_us);
}

static void what_was_stored_before_the_subscription_was_turned_on_is_not_for_it(void **state)
{
    World *world = *state;
    assert_false(wants(world, CATEGORY_NONE, MADE_US - 1));
    assert_true(wants(world, CATEGORY_NONE, MADE_US));
    world->entry.state_changed_at_us = CHANGED_US;
    assert_false(wants(world, CATEGORY_NONE, CHANGED_US - 1));
    assert_true(wants(world, CATEGORY_NONE, CHANGED_US));
}

static void a_report_without_a_category_is_for_a_filter_by_its_notifications(void **state)
{
    World *world = *state;
    Stentor__V1__Category billing[] = {(Stentor__V1__Category)CATEGORY_BILLING};
    world->entry.n_categories = 1;
    world->entry.categories = billing;
    assert_true(wants(world, CATEGORY_BILLING, MADE_US));
    assert_false(wants(world, CATEGORY_SECURITY, MADE_US));
    assert_false(wants(world, CATEGORY_NONE, MADE_US));
}

static void an_event_is_the_first_turn_of_the_delivery_of_both_ids(void **state)
{
    World *world = *state;
    char id[WEBHOOK_DELIVERY_ID_SIZE];
    world->entry.in_order = true;
    const Stentor__V1__WebhookDelivery *event = match_event(
        &world->subscription, &world->message, &world->status, "notification.sent", world->arena);
    webhook_delivery_id(STR(WHS), STR(EVENT), id);
    assert_string_equal(event->delivery_id, id);
    assert_string_equal(event->webhook_id, EVENT);
    assert_string_equal(event->meta->tenant, "acme");
    assert_string_equal(event->meta->notification_id, NTF);
    assert_int_equal(event->sequence, 17);
    assert_int_equal(event->turn, 1);
    assert_int_equal(event->attempt, 0);
    assert_true(event->in_order);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_status_of_its_subjects_tenant_is_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_status_about_another_tenant_than_its_subjects_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_status_without_an_id_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            what_was_stored_before_the_subscription_was_turned_on_is_not_for_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_report_without_a_category_is_for_a_filter_by_its_notifications, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            an_event_is_the_first_turn_of_the_delivery_of_both_ids, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
