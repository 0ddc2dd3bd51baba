// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "services/digest-flusher/work.h"
#include "stentor/v1/deferred.pb-c.h"

#define NTF_ID "ntf_01KAGTQ5M0000000000000000A"
#define DUE_US INT64_C(1763648968320000)

typedef Stentor__V1__Deferred Deferred;

static int set_up(void **state)
{
    *state = arena_new(0);
    return 0;
}

static int tear_down(void **state)
{
    arena_free(*state);
    return 0;
}

static Stentor__V1__Meta *new_meta(Arena *arena, const char *event_id)
{
    Stentor__V1__Meta *meta = arena_alloc(arena, sizeof(*meta));
    stentor__v1__meta__init(meta);
    meta->event_id = arena_cstr(arena, str_from(event_id));
    meta->tenant = arena_cstr(arena, STR("demo"));
    meta->notification_id = arena_cstr(arena, STR(NTF_ID));
    return meta;
}

static Deferred *new_deferred(Arena *arena, const char *reason)
{
    Deferred *deferred = arena_alloc(arena, sizeof(*deferred));
    stentor__v1__deferred__init(deferred);
    deferred->meta = new_meta(arena, "deferreddeferred000001");
    deferred->reason = arena_cstr(arena, str_from(reason));
    deferred->due_at_us = DUE_US;
    return deferred;
}

static Deferred *new_schedule(Arena *arena)
{
    Deferred *deferred = new_deferred(arena, "schedule");
    Stentor__V1__NotificationRequest *request = arena_alloc(arena, sizeof(*request));
    stentor__v1__notification_request__init(request);
    request->meta = new_meta(arena, "requestrequest00000001");
    request->channel = STENTOR__V1__CHANNEL__CHANNEL_EMAIL;
    request->priority = STENTOR__V1__PRIORITY__PRIORITY_LOW;
    request->template_ = arena_cstr(arena, STR("welcome"));
    deferred->work_case = STENTOR__V1__DEFERRED__WORK_REQUEST;
    deferred->request = request;
    return deferred;
}

static Stentor__V1__Sealed *new_sealed(Arena *arena)
{
    Stentor__V1__Sealed *sealed = arena_alloc(arena, sizeof(*sealed));
    stentor__v1__sealed__init(sealed);
    sealed->key_subject =
        (ProtobufCBinaryData){KEY_SUBJECT_LEN, arena_zalloc(arena, KEY_SUBJECT_LEN)};
    sealed->key_generation = 1;
    return sealed;
}

static Deferred *new_item(Arena *arena)
{
    Deferred *deferred = new_schedule(arena);
    deferred->reason = arena_cstr(arena, STR("digest"));
    deferred->request->address = new_sealed(arena);
    Stentor__V1__DigestWindow *window = arena_alloc(arena, sizeof(*window));
    stentor__v1__digest_window__init(window);
    window->window_id = arena_cstr(arena, STR("dgw_windowwindowwindow0001"));
    window->recipient_id = arena_cstr(arena, STR("rcp_01KAGTQ5M0000000000000000A"));
    window->category = STENTOR__V1__CATEGORY__CATEGORY_SOCIAL;
    window->channel = STENTOR__V1__CHANNEL__CHANNEL_EMAIL;
    window->flush_at_us = DUE_US;
    window->template_ = arena_cstr(arena, STR("digest"));
    window->template_version = arena_cstr(arena, STR("1.0.0"));
    deferred->digest = window;
    return deferred;
}

static Deferred *new_cancel(Arena *arena)
{
    Deferred *deferred = new_deferred(arena, "cancel");
    Stentor__V1__Cancel *cancel = arena_alloc(arena, sizeof(*cancel));
    stentor__v1__cancel__init(cancel);
    cancel->cancel_key = arena_cstr(arena, STR("reminder/stay1"));
    cancel->before_us = DUE_US;
    cancel->reason = arena_cstr(arena, STR("stay.cancelled"));
    deferred->meta->notification_id = arena_cstr(arena, STR_EMPTY);
    deferred->due_at_us = 0;
    deferred->work_case = STENTOR__V1__DEFERRED__WORK_CANCEL;
    deferred->cancel = cancel;
    return deferred;
}

static Deferred *new_retry(Arena *arena)
{
    Deferred *deferred = new_deferred(arena, "retry");
    Stentor__V1__Rendered *rendered = arena_alloc(arena, sizeof(*rendered));
    stentor__v1__rendered__init(rendered);
    rendered->meta = new_meta(arena, "renderedrendered000001");
    rendered->priority = STENTOR__V1__PRIORITY__PRIORITY_CRITICAL;
    rendered->attempt = 3;
    rendered->rung = 2;
    deferred->work_case = STENTOR__V1__DEFERRED__WORK_RENDERED;
    deferred->rendered = rendered;
    return deferred;
}

static Str pack(Arena *arena, const Deferred *deferred)
{
    Str bytes = STR_EMPTY;
    assert_true(event_pack(&deferred->base, arena, &bytes, NULL));
    return bytes;
}

static void refuses(Arena *arena, Str payload, const char *because)
{
    Error err = {0};
    DueWork work;
    assert_false(due_work_read(payload, arena, &work, &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
    if (strstr(err.text, because) == NULL) {
        fail_msg("'%s' does not say '%s'", err.text, because);
    }
}

static void a_scheduled_request_goes_out_under_its_own_id(void **state)
{
    Arena *arena = *state;
    Deferred *deferred = new_schedule(arena);
    DueWork work;
    assert_true(due_work_read(pack(arena, deferred), arena, &work, NULL));
    assert_true(str_eq(work.work_id, STR("deferreddeferred000001")));
    assert_true(str_eq(work.tenant, STR("demo")));
    assert_true(str_eq(work.notification_id, STR(NTF_ID)));
    assert_true(str_eq(work.reason, STR("schedule")));
    assert_int_equal(work.due_at_us, DUE_US);
    assert_string_equal(work.subject, "ntf.request.low.demo");
    assert_string_equal(work.event_id, "requestrequest00000001");
    Str request = STR_EMPTY;
    deferred->request->due_at_us = DUE_US; // how late it is sent counts from there
    assert_true(event_pack(&deferred->request->base, arena, &request, NULL));
    assert_true(str_eq(work.payload, request));
}

static void a_retry_goes_out_under_the_id_of_its_attempt(void **state)
{
    Arena *arena = *state;
    DueWork work;
    assert_true(due_work_read(pack(arena, new_retry(arena)), arena, &work, NULL));
    char expected[EVENT_ID_SIZE];
    event_id_derive("rendered", STR(NTF_ID), STR("3"), expected);
    assert_string_equal(work.subject, "ntf.rendered.critical.demo");
    assert_string_equal(work.event_id, expected);
    const Stentor__V1__Rendered *rendered = (const Stentor__V1__Rendered *)event_unpack(
        &stentor__v1__rendered__descriptor, work.payload, arena, NULL);
    assert_non_null(rendered);
    assert_string_equal(rendered->meta->event_id, expected);
    assert_int_equal(rendered->attempt, 3);
    assert_int_equal(rendered->rung, 2);
}

// Of one that had waited for its time, the wait does not count.
static void a_retry_waits_since_its_mail_was_to_be_sent(void **state)
{
    Arena *arena = *state;
    DueWork work;
    Deferred *deferred = new_retry(arena);
    deferred->rendered->accepted_at_us = DUE_US - 100;
    assert_true(due_work_read(pack(arena, deferred), arena, &work, NULL));
    assert_int_equal(work.caused_at_us, DUE_US - 100);
    deferred->rendered->due_at_us = DUE_US - 10;
    assert_true(due_work_read(pack(arena, deferred), arena, &work, NULL));
    assert_int_equal(work.caused_at_us, DUE_US - 10);
    deferred->rendered->due_at_us = INT64_MAX;
    assert_true(due_work_read(pack(arena, deferred), arena, &work, NULL));
    assert_int_equal(work.caused_at_us, 0);
}

static void fields_that_we_do_not_know_go_through(void **state)
{
    Arena *arena = *state;
    Deferred *deferred = new_schedule(arena);
    ProtobufCMessageUnknownField unknown = {
        .tag = 1000, .wire_type = PROTOBUF_C_WIRE_TYPE_VARINT, .len = 1, .data = (uint8_t[]){42}};
    deferred->request->base.n_unknown_fields = 1;
    deferred->request->base.unknown_fields = &unknown;
    DueWork work;
    assert_true(due_work_read(pack(arena, deferred), arena, &work, NULL));
    const ProtobufCMessage *request =
        event_unpack(&stentor__v1__notification_request__descriptor, work.payload, arena, NULL);
    assert_non_null(request);
    assert_int_equal(request->n_unknown_fields, 1);
    assert_int_equal(request->unknown_fields[0].tag, 1000);
}

static void bytes_that_are_no_deferred_are_refused(void **state)
{
    refuses(*state, STR("\xff\xff\xff"), "Deferred");
    refuses(*state, STR_EMPTY, "meta is missing");
}

static void a_wrong_head_is_refused_by_its_field(void **state)
{
    Arena *arena = *state;
    Deferred *deferred = new_schedule(arena);
    deferred->meta->event_id = arena_cstr(arena, STR("short"));
    refuses(arena, pack(arena, deferred), "meta.event_id");
    deferred = new_schedule(arena);
    deferred->meta->tenant = arena_cstr(arena, STR("a.b"));
    refuses(arena, pack(arena, deferred), "meta.tenant");
    deferred = new_schedule(arena);
    deferred->meta->notification_id = arena_cstr(arena, STR("ntf_x"));
    refuses(arena, pack(arena, deferred), "meta.notification_id");
    deferred = new_schedule(arena);
    deferred->due_at_us = 0;
    refuses(arena, pack(arena, deferred), "due_at_us");
    deferred->due_at_us = INT64_MAX;
    refuses(arena, pack(arena, deferred), "due_at_us");
    refuses(arena, pack(arena, new_deferred(arena, "tomorrow")), "reason 'tomorrow'");
}

static void work_that_does_not_fit_its_reason_is_refused(void **state)
{
    Arena *arena = *state;
    refuses(arena, pack(arena, new_deferred(arena, "schedule")), "request is missing");
    refuses(arena, pack(arena, new_deferred(arena, "retry")), "rendered is missing");
    Deferred *deferred = new_schedule(arena);
    deferred->reason = arena_cstr(arena, STR("retry"));
    refuses(arena, pack(arena, deferred), "rendered is missing");
}

static void embedded_work_that_is_wrong_is_refused(void **state)
{
    Arena *arena = *state;
    Deferred *deferred = new_schedule(arena);
    deferred->request->meta->tenant = arena_cstr(arena, STR("other"));
    refuses(arena, pack(arena, deferred), "request.meta is about another notification");
    deferred = new_schedule(arena);
    deferred->request->meta->event_id = arena_cstr(arena, STR(""));
    refuses(arena, pack(arena, deferred), "request.meta.event_id");
    deferred = new_schedule(arena);
    deferred->request->meta = NULL;
    refuses(arena, pack(arena, deferred), "request.meta is missing");
    deferred = new_schedule(arena);
    deferred->request->priority = (Stentor__V1__Priority)9;
    refuses(arena, pack(arena, deferred), "request.priority 9");
    deferred = new_retry(arena);
    deferred->rendered->attempt = 0;
    refuses(arena, pack(arena, deferred), "rendered.attempt");
}

static void quiet_hours_and_limits_wait_as_a_schedule_does(void **state)
{
    Arena *arena = *state;
    const char *const reasons[] = {"quiet", "limit"};
    for (size_t i = 0; i < 2; i++) {
        Deferred *deferred = new_schedule(arena);
        deferred->reason = arena_cstr(arena, str_from(reasons[i]));
        DueWork work;
        assert_true(due_work_read(pack(arena, deferred), arena, &work, NULL));
        assert_int_equal(work.kind, WORK_SEND);
        assert_true(str_eq(work.reason, str_from(reasons[i])));
        assert_string_equal(work.subject, "ntf.request.low.demo");
        assert_string_equal(work.event_id, "requestrequest00000001");
    }
}

static void the_cause_is_decided_by_the_earlier_of_id_and_acceptance(void **state)
{
    Arena *arena = *state;
    Deferred *deferred = new_schedule(arena);
    deferred->cancel_key = arena_cstr(arena, STR("reminder/stay1"));
    int64_t id_ms = 0;
    assert_true(id_parse(STR(NTF_ID), "ntf_", &id_ms));
    DueWork work;
    deferred->request->accepted_at_us = id_ms * 1000 + 5000000;
    assert_true(due_work_read(pack(arena, deferred), arena, &work, NULL));
    assert_true(str_eq(work.cancel_key, STR("reminder/stay1")));
    assert_int_equal(work.caused_at_us, id_ms * 1000);
    assert_int_equal(work.accepted_at_us, id_ms * 1000 + 5000000);
    deferred->request->accepted_at_us = id_ms * 1000 - 5000000;
    assert_true(due_work_read(pack(arena, deferred), arena, &work, NULL));
    assert_int_equal(work.caused_at_us, id_ms * 1000 - 5000000);
    assert_int_equal(work.event_at_us, work.caused_at_us); // nothing better is known
    assert_int_equal(work.source_event_id.len, 0);
    deferred->request->source_event_at_us = 777;
    deferred->request->source_event_id = arena_cstr(arena, STR("e-1"));
    assert_true(due_work_read(pack(arena, deferred), arena, &work, NULL));
    assert_int_equal(work.event_at_us, 777);
    assert_true(str_eq(work.source_event_id, STR("e-1")));
}

static void an_item_of_a_digest_knows_its_window(void **state)
{
    Arena *arena = *state;
    DueWork work;
    Error err = {0};
    if (!due_work_read(pack(arena, new_item(arena)), arena, &work, &err)) {
        fail_msg("%s", err.text);
    }
    assert_int_equal(work.kind, WORK_GATHER);
    assert_string_equal(work.window->window_id, "dgw_windowwindowwindow0001");
    assert_string_equal(work.subject, "ntf.request.low.demo");
    assert_string_equal(work.event_id, "requestrequest00000001");
}

static void a_wrong_window_is_refused_by_its_field(void **state)
{
    Arena *arena = *state;
    Deferred *deferred = new_item(arena);
    deferred->digest = NULL;
    refuses(arena, pack(arena, deferred), "digest is missing");
    deferred = new_item(arena);
    deferred->digest->window_id = arena_cstr(arena, STR("dgw_window'window window01"));
    refuses(arena, pack(arena, deferred), "digest.window_id");
    deferred = new_item(arena);
    deferred->digest->recipient_id = arena_cstr(arena, STR_EMPTY);
    refuses(arena, pack(arena, deferred), "digest.recipient_id");
    deferred = new_item(arena);
    deferred->digest->category = STENTOR__V1__CATEGORY__CATEGORY_UNSPECIFIED;
    refuses(arena, pack(arena, deferred), "digest.category 0");
    deferred = new_item(arena);
    deferred->digest->channel = STENTOR__V1__CHANNEL__CHANNEL_SMS;
    refuses(arena, pack(arena, deferred), "digest.channel");
    deferred = new_item(arena);
    deferred->digest->flush_at_us = -1;
    refuses(arena, pack(arena, deferred), "digest.flush_at_us");
    deferred = new_item(arena);
    deferred->digest->template_version = arena_cstr(arena, STR_EMPTY);
    refuses(arena, pack(arena, deferred), "digest.template_version");
    deferred = new_item(arena);
    deferred->request->address = NULL;
    refuses(arena, pack(arena, deferred), "request.address");
    deferred = new_item(arena);
    deferred->request->channel = (Stentor__V1__Channel)77;
    refuses(arena, pack(arena, deferred), "request.channel 77");
}

static void a_cancellation_is_about_a_key_and_a_time(void **state)
{
    Arena *arena = *state;
    DueWork work;
    Deferred *deferred = new_cancel(arena);
    assert_true(due_work_read(pack(arena, deferred), arena, &work, NULL));
    assert_int_equal(work.kind, WORK_CANCEL);
    assert_true(str_eq(work.cancel_key, STR("reminder/stay1")));
    assert_int_equal(work.cancel->before_us, DUE_US);
    deferred->cancel->before_us = 0;
    refuses(arena, pack(arena, deferred), "cancel.before_us");
    deferred = new_cancel(arena);
    deferred->cancel->newer_at_us = -1;
    refuses(arena, pack(arena, deferred), "cancel.newer_at_us");
    deferred = new_cancel(arena);
    deferred->cancel->cancel_key = arena_cstr(arena, STR_EMPTY);
    refuses(arena, pack(arena, deferred), "cancel.cancel_key");
    deferred = new_schedule(arena);
    deferred->reason = arena_cstr(arena, STR("cancel"));
    refuses(arena, pack(arena, deferred), "cancel is missing");
}

static Deferred *new_hook(Arena *arena)
{
    Deferred *deferred = new_deferred(arena, "hook");
    Stentor__V1__WebhookDelivery *delivery = arena_alloc(arena, sizeof(*delivery));
    stentor__v1__webhook_delivery__init(delivery);
    delivery->meta = new_meta(arena, "hookhookhookhookhook02");
    delivery->turn = 2;
    deferred->work_case = STENTOR__V1__DEFERRED__WORK_WEBHOOK;
    deferred->webhook = delivery;
    return deferred;
}

static void a_webhook_goes_back_to_hook_and_concerns_no_notification(void **state)
{
    Arena *arena = *state;
    DueWork work;
    Error err = {0};
    assert_true(due_work_read(pack(arena, new_hook(arena)), arena, &work, &err));
    assert_int_equal(work.kind, WORK_SEND);
    assert_string_equal(work.subject, "ntf.hook.demo");
    assert_string_equal(work.event_id, "hookhookhookhookhook02");
    assert_int_equal(work.due_at_us, DUE_US);
    assert_int_equal(work.notification_id.len, 0);
}

static void a_webhook_of_another_tenant_or_without_an_id_is_rejected(void **state)
{
    Arena *arena = *state;
    refuses(arena, pack(arena, new_deferred(arena, "hook")), "webhook is missing");
    Deferred *deferred = new_hook(arena);
    deferred->webhook->meta->tenant = arena_cstr(arena, STR("other"));
    refuses(arena, pack(arena, deferred), "webhook.meta is about another tenant");
    deferred = new_hook(arena);
    deferred->webhook->meta->event_id = arena_cstr(arena, STR("short"));
    refuses(arena, pack(arena, deferred), "webhook.meta.event_id");
    deferred = new_hook(arena);
    deferred->due_at_us = 0;
    refuses(arena, pack(arena, deferred), "due_at_us");
}

static Deferred *new_event(Arena *arena, const char *type, Str payload)
{
    Deferred *deferred = new_deferred(arena, "saga");
    deferred->meta->notification_id = arena_cstr(arena, STR(""));
    Stentor__V1__DomainEvent *event = arena_alloc(arena, sizeof(*event));
    stentor__v1__domain_event__init(event);
    event->type = arena_cstr(arena, str_from(type));
    event->payload = pb_data(payload);
    deferred->work_case = STENTOR__V1__DEFERRED__WORK_EVENT;
    deferred->event = event;
    return deferred;
}

static void a_domain_event_goes_out_on_events_under_its_deferrals_id(void **state)
{
    Arena *arena = *state;
    DueWork work;
    Error err = {0};
    Deferred *deferred = new_event(arena, "PlaceOrderTimeout", STR("packed"));
    deferred->cancel_key = arena_cstr(arena, STR("not this"));
    assert_true(due_work_read(pack(arena, deferred), arena, &work, &err));
    assert_int_equal(work.kind, WORK_SEND);
    assert_string_equal(work.subject, "evt.demo.PlaceOrderTimeout");
    assert_string_equal(work.event_id, "deferreddeferred000001");
    assert_true(str_eq(work.work_id, STR("deferreddeferred000001")));
    assert_true(str_eq(work.payload, STR("packed")));
    assert_int_equal(work.due_at_us, DUE_US);
    assert_int_equal(work.notification_id.len, 0);
    assert_int_equal(work.cancel_key.len, 0);
    assert_int_equal(work.recipient_id.len, 0);
}

static void a_domain_event_that_digest_flusher_may_not_publish_is_rejected(void **state)
{
    Arena *arena = *state;
    refuses(arena, pack(arena, new_deferred(arena, "saga")), "event is missing");
    refuses(arena, pack(arena, new_event(arena, "PlaceOrder", STR("p"))), "'PlaceOrder'");
    refuses(arena, pack(arena, new_event(arena, "", STR("p"))), "event.type");
    refuses(arena, pack(arena, new_event(arena, "CleanUpOrders", STR_EMPTY)), "event.payload");
    Deferred *deferred = new_event(arena, "PlaceOrderTimeout", STR("p"));
    deferred->due_at_us = 0;
    refuses(arena, pack(arena, deferred), "due_at_us");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_scheduled_request_goes_out_under_its_own_id),
        TEST(a_retry_goes_out_under_the_id_of_its_attempt),
        TEST(a_retry_waits_since_its_mail_was_to_be_sent),
        TEST(fields_that_we_do_not_know_go_through),
        TEST(bytes_that_are_no_deferred_are_refused),
        TEST(a_wrong_head_is_refused_by_its_field),
        TEST(work_that_does_not_fit_its_reason_is_refused),
        TEST(embedded_work_that_is_wrong_is_refused),
        TEST(quiet_hours_and_limits_wait_as_a_schedule_does),
        TEST(the_cause_is_decided_by_the_earlier_of_id_and_acceptance),
        TEST(an_item_of_a_digest_knows_its_window),
        TEST(a_wrong_window_is_refused_by_its_field),
        TEST(a_cancellation_is_about_a_key_and_a_time),
        TEST(a_webhook_goes_back_to_hook_and_concerns_no_notification),
        TEST(a_webhook_of_another_tenant_or_without_an_id_is_rejected),
        TEST(a_domain_event_goes_out_on_events_under_its_deferrals_id),
        TEST(a_domain_event_that_digest_flusher_may_not_publish_is_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
