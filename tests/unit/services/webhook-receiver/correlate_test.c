// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/bus/events/suppression_event.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "services/webhook-receiver/callback.h"
#include "services/webhook-receiver/correlate.h"

#define NTF "ntf_01ARZ3NDEKTSV4RRFFQ69G5FAV"

static const CallbackOrigin ORIGIN = {
    .tenant = {"acme", 4},
    .vendor = {"sendgrid", 8},
    .channel = CHANNEL_EMAIL,
    .event_id = {"callback-id", 11},
    .index = 3,
    .received_at_us = 77};

static CallbackEvent bounce(const char *id)
{
    return (CallbackEvent){
        .id = str_from(id),
        .notification_id = STR(NTF),
        .message_id = STR("m1"),
        .status = STATUS_BOUNCED,
        .outcome = OUTCOME_BOUNCE,
        .reason_code = "hard_bounce",
        .enhanced_code = STR("5.1.1"),
        .text = STR("unknown user"),
        .at_us = 55,
    };
}

static void an_event_becomes_the_status_of_its_notification(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    CallbackEvent event = bounce("e1");
    const Stentor__V1__NotificationStatus *status = correlate_status(&event, &ORIGIN, arena);
    assert_string_equal(status->meta->tenant, "acme");
    assert_string_equal(status->meta->notification_id, NTF);
    assert_string_equal(status->meta->causation_id, "callback-id");
    assert_int_equal(status->meta->occurred_at_us, 55);
    assert_int_equal(status->status, STATUS_BOUNCED);
    assert_string_equal(status->reason_code, "hard_bounce");
    assert_string_equal(status->reason, "unknown user");
    assert_string_equal(status->attempt->vendor, "sendgrid");
    assert_string_equal(status->attempt->vendor_message_id, "m1");
    assert_string_equal(status->attempt->enhanced_code, "5.1.1");
    assert_int_equal(status->attempt->outcome, OUTCOME_BOUNCE);
    assert_int_equal(status->attempt->number, 0);
    assert_int_equal(status->attempt->of_attempt, 0);
    arena_free(arena);
}

static void a_vendors_text_does_not_name_the_recipient(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    CallbackOrigin origin = ORIGIN;
    origin.channel = CHANNEL_SMS;
    CallbackEvent event = bounce("e1");
    event.email = STR("+4915177777777");
    event.text = STR("x4915177777777 is gone");
    const Stentor__V1__NotificationStatus *status = correlate_status(&event, &origin, arena);
    assert_string_equal(status->reason, "x*** is gone");
    assert_string_equal(status->attempt->text, "x*** is gone");
    arena_free(arena);
}

static void what_it_costs_is_of_the_attempt_that_the_event_names(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    CallbackEvent event = bounce("e1");
    event.attempt = 3;
    event.segments = 2;
    event.cost_micros = 15000;
    event.currency = STR("USD");
    event.price_category = STR("utility");
    const Stentor__V1__NotificationStatus *status = correlate_status(&event, &ORIGIN, arena);
    assert_int_equal(status->attempt->number, 0);
    assert_int_equal(status->attempt->of_attempt, 3);
    assert_int_equal(status->attempt->segments, 2);
    assert_int_equal(status->attempt->cost_micros, 15000);
    assert_string_equal(status->attempt->currency, "USD");
    assert_string_equal(status->attempt->price_category, "utility");
    arena_free(arena);
}

static void the_url_names_what_the_event_does_not(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    CallbackOrigin origin = ORIGIN;
    origin.vendor = STR("twilio");
    origin.channel = CHANNEL_SMS;
    origin.notification_id = STR(NTF);
    origin.attempt = 3;
    CallbackEvent event = {
        .message_id = STR("SM1"), .status = STATUS_DELIVERED, .reason_code = "", .text = STR_EMPTY};
    correlate_name(&event, &origin);
    assert_int_equal(event.attempt, 3);
    const Stentor__V1__NotificationStatus *status = correlate_status(&event, &origin, arena);
    assert_string_equal(status->meta->notification_id, NTF);
    assert_int_equal(status->channel, CHANNEL_SMS);
    CallbackEvent own = bounce("e1");
    own.attempt = 1;
    own.notification_id = STR("ntf_01ARZ3NDEKTSV4RRFFQ69G5FAX");
    correlate_name(&own, &origin);
    assert_int_equal(own.attempt, 1);
    assert_true(str_eq(own.notification_id, STR("ntf_01ARZ3NDEKTSV4RRFFQ69G5FAX")));
    arena_free(arena);
}

static void the_id_comes_from_the_vendors_event_so_that_a_repeat_is_one(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    CallbackEvent event = bounce("e1");
    CallbackOrigin elsewhere = ORIGIN;
    elsewhere.event_id = STR("another-callback");
    elsewhere.index = 9;
    char expected[EVENT_ID_SIZE];
    event_id_derive("status", STR("e1"), STR("bounced"), expected);
    assert_string_equal(correlate_status(&event, &ORIGIN, arena)->meta->event_id, expected);
    assert_string_equal(correlate_status(&event, &elsewhere, arena)->meta->event_id, expected);
    arena_free(arena);
}

// Whether another call follows is in the ledger.
static void a_call_without_an_answer_is_for_the_dispatcher_to_publish(void **state)
{
    (void)state;
    CallbackOrigin origin = ORIGIN;
    int64_t now_us = origin.received_at_us;
    CallbackEvent event = bounce("e1");
    event.notification_id = STR(NTF);
    event.at_us = now_us;
    assert_false(correlate_is_late(&event, &origin, now_us));
    static const char *const reasons[] = {"busy", "no_answer", "rejected", ""};
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
        event.reason_code = reasons[i];
        origin.channel = CHANNEL_VOICE;
        assert_int_equal(correlate_is_late(&event, &origin, now_us), i < 2);
        origin.channel = CHANNEL_SMS;
        assert_false(correlate_is_late(&event, &origin, now_us));
    }
}

static const char *status_id(CallbackEvent event, CallbackOrigin origin, Arena *arena)
{
    return correlate_status(&event, &origin, arena)->meta->event_id;
}

// Row C57: vendor, message or event id, type and when it occurred.
static void of_other_vendors_message_time_and_kind_make_the_event(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    CallbackOrigin origin = ORIGIN, repeat = ORIGIN, other = ORIGIN;
    origin.vendor = repeat.vendor = STR("postmark");
    other.vendor = STR("resend");
    repeat.event_id = STR("another-callback");
    repeat.index = 0;
    CallbackEvent event = bounce(""), later = bounce(""), elsewhere = bounce(""),
                  opened = bounce("");
    later.at_us++;
    elsewhere.message_id = STR("m2");
    opened.status = STATUS_OPENED;
    const char *id = status_id(event, origin, arena);
    assert_string_equal(status_id(event, repeat, arena), id);
    assert_string_not_equal(status_id(event, other, arena), id);
    assert_string_not_equal(status_id(later, origin, arena), id);
    assert_string_not_equal(status_id(elsewhere, origin, arena), id);
    assert_string_not_equal(status_id(opened, origin, arena), id);
    arena_free(arena);
}

static void an_event_without_a_time_is_known_by_its_place(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    CallbackEvent event = bounce("");
    event.at_us = 0;
    CallbackOrigin next = ORIGIN;
    next.index++;
    const Stentor__V1__NotificationStatus *a = correlate_status(&event, &ORIGIN, arena);
    const Stentor__V1__NotificationStatus *b = correlate_status(&event, &next, arena);
    const Stentor__V1__NotificationStatus *again = correlate_status(&event, &ORIGIN, arena);
    assert_string_not_equal(a->meta->event_id, b->meta->event_id);
    assert_string_equal(a->meta->event_id, again->meta->event_id);
    assert_int_equal(a->meta->occurred_at_us, 77);
    arena_free(arena);
}

static void the_dispatcher_gets_the_same_under_an_id_of_its_own(void **state)
{
    (void)state;
    for (int late = 0; late < 2; late++) {
        Arena *arena = arena_new(0);
        CallbackEvent event = bounce("e1");
        event.attempt = 2;
        event.machine = true;
        BusOut settle = {0};
        assert_true(correlate_settle(&event, &ORIGIN, late == 1, arena, &settle, NULL));
        char expected[EVENT_ID_SIZE];
        event_id_derive("settle", STR("e1"), STR("bounced"), expected);
        assert_string_equal(settle.subject, "ntf.settle.acme");
        assert_true(str_eq(settle.event_id, str_from(expected)));
        const Stentor__V1__NotificationStatus *status =
            (const Stentor__V1__NotificationStatus *)event_unpack(
                &stentor__v1__notification_status__descriptor, settle.payload, arena, NULL);
        assert_non_null(status);
        assert_string_equal(status->meta->event_id, status_id(event, ORIGIN, arena));
        assert_int_equal(status->attempt->number, 2);
        assert_true(status->attempt->machine);
        assert_int_equal(status->unpublished, late);
        arena_free(arena);
    }
}

static void an_event_is_late_when_status_may_have_forgotten_it(void **state)
{
    (void)state;
    CallbackEvent event = bounce("e1"), untimed = bounce("e1"), nameless = bounce("e1");
    int64_t late_us = CORRELATE_LATE_S * INT64_C(1000000);
    untimed.at_us = 0;
    nameless.notification_id = STR_EMPTY;
    assert_false(correlate_is_late(&event, &ORIGIN, event.at_us + late_us));
    assert_true(correlate_is_late(&event, &ORIGIN, event.at_us + late_us + 1));
    assert_true(correlate_is_late(&untimed, &ORIGIN, ORIGIN.received_at_us));
    CallbackOrigin mail = ORIGIN;
    mail.is_mail = true; // known for ever by its bytes
    assert_false(correlate_is_late(&untimed, &mail, ORIGIN.received_at_us + late_us));
    assert_true(correlate_is_late(&untimed, &mail, ORIGIN.received_at_us + late_us + 1));
    assert_true(correlate_is_late(&nameless, &ORIGIN, nameless.at_us));
}

static void a_path_names_tenant_vendor_and_capability(void **state)
{
    (void)state;
    CallbackRoute route;
    assert_true(callback_route(STR("/v1/inbound/acme/sendgrid"), &route));
    assert_true(str_eq(route.tenant, STR("acme")) && route.capability.len == 0);
    assert_string_equal(route.vendor->name, "sendgrid");
    assert_true(callback_route(STR("/v1/inbound/acme/postmark/abc"), &route));
    assert_string_equal(route.vendor->name, "postmark");
    assert_true(str_eq(route.capability, STR("abc")));
    static const char *const BAD[] = {
        "",
        "/",
        "/v1/inbound",
        "/v1/inbound/",
        "/v1/inbound/acme",
        "/v1/inbound/acme/",
        "/v1/inbound//sendgrid",
        "/v1/inbound/ACME/sendgrid",
        "/v1/inbound/acme/sendgrid/",
        "/v1/inbound/acme/sendgrid/abc/",
        "/v1/inbound/acme/sendgrid//",
        "/v1/inbound/acme/pigeon",
        "/v1/inbound/acme/rejected",
        "/v1/inbound/a.b/sendgrid",
        "/v2/inbound/acme/sendgrid",
    };
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        if (callback_route(str_from(BAD[i]), &route)) {
            fail_msg("taken: %s", BAD[i]);
        }
    }
}

static const Str HASH_KEY = {"0123456789abcdef0123456789abcdef", 32};

static bool suppresses(const CallbackEvent *event, const Suppressions *known, BusOut *ret)
{
    Arena *arena = arena_new(0);
    Stentor__V1__Suppression *entry = NULL;
    bool made = correlate_suppression(event, &ORIGIN, HASH_KEY, known, arena, &entry);
    if (made) {
        assert_true(suppression_event(entry, arena, ret, NULL));
        assert_memory_equal(ret->subject, "cfg.suppression.acme.email.any.", 31);
        assert_int_equal(ret->event_id.len, EVENT_ID_LEN);
    }
    arena_free(arena);
    return made;
}

static void a_bounce_suppresses_the_address_unless_it_was_released_since(void **state)
{
    (void)state;
    Suppressions *known = suppressions_new();
    CallbackEvent event = bounce("e1");
    BusOut out;
    event.suppress = SUPPRESSION_HARD_BOUNCE;
    event.email = STR("Alice@Example.com");
    assert_true(suppresses(&event, known, &out));
    uint8_t hash[ADDRESS_HASH_LEN];
    address_hash(HASH_KEY, STR("acme"), CHANNEL_EMAIL, STR("alice@example.com"), hash);
    SuppressionEntry released = {.reason = SUPPRESSION_NONE, .changed_at_us = 60};
    suppressions_note(known, STR("acme"), CHANNEL_EMAIL, CATEGORY_NONE, hash, &released);
    assert_false(suppresses(&event, known, &out));
    event.at_us = 61;
    assert_true(suppresses(&event, known, &out));
    suppressions_free(known);
}

static void an_event_without_a_time_is_named_in_the_entry_it_makes(void **state)
{
    (void)state;
    Suppressions *known = suppressions_new();
    Arena *arena = arena_new(0);
    Stentor__V1__Suppression *entry = NULL;
    CallbackEvent event = bounce("e1");
    event.suppress = SUPPRESSION_OPT_OUT;
    event.email = STR("alice@example.com");
    event.message_id = STR("SM1");
    assert_true(correlate_suppression(&event, &ORIGIN, HASH_KEY, known, arena, &entry));
    assert_string_equal(entry->source_event_id, ""); // its time says whether it is a repeat
    event.at_us = 0;
    assert_true(correlate_suppression(&event, &ORIGIN, HASH_KEY, known, arena, &entry));
    assert_int_equal(strlen(entry->source_event_id), EVENT_ID_LEN);
    SuppressionEntry released = {.changed_at_us = 1, .cause = suppression_cause(entry)};
    suppressions_note(
        known, STR("acme"), CHANNEL_EMAIL, CATEGORY_NONE, entry->address_hash.data, &released);
    CallbackOrigin later = ORIGIN;
    later.received_at_us += 1000000000;
    assert_false(correlate_suppression(&event, &later, HASH_KEY, known, arena, &entry));
    event.message_id = STR("SM2");
    assert_true(correlate_suppression(&event, &later, HASH_KEY, known, arena, &entry));
    arena_free(arena);
    suppressions_free(known);
}

static void only_what_is_for_good_and_has_an_address_suppresses(void **state)
{
    (void)state;
    Suppressions *known = suppressions_new();
    BusOut out;
    CallbackEvent event = bounce("e1");
    event.email = STR("alice@example.com");
    assert_false(suppresses(&event, known, &out));
    event.suppress = SUPPRESSION_HARD_BOUNCE;
    event.enhanced_code = STR("4.2.2");
    assert_false(suppresses(&event, known, &out));
    event.enhanced_code = STR("5.2.2");
    assert_true(suppresses(&event, known, &out));
    event.email = STR_EMPTY;
    assert_false(suppresses(&event, known, &out));
    suppressions_free(known);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_event_becomes_the_status_of_its_notification),
        cmocka_unit_test(a_vendors_text_does_not_name_the_recipient),
        cmocka_unit_test(what_it_costs_is_of_the_attempt_that_the_event_names),
        cmocka_unit_test(the_url_names_what_the_event_does_not),
        cmocka_unit_test(a_call_without_an_answer_is_for_the_dispatcher_to_publish),
        cmocka_unit_test(the_id_comes_from_the_vendors_event_so_that_a_repeat_is_one),
        cmocka_unit_test(of_other_vendors_message_time_and_kind_make_the_event),
        cmocka_unit_test(an_event_without_a_time_is_known_by_its_place),
        cmocka_unit_test(the_dispatcher_gets_the_same_under_an_id_of_its_own),
        cmocka_unit_test(an_event_is_late_when_status_may_have_forgotten_it),
        cmocka_unit_test(a_path_names_tenant_vendor_and_capability),
        cmocka_unit_test(a_bounce_suppresses_the_address_unless_it_was_released_since),
        cmocka_unit_test(an_event_without_a_time_is_named_in_the_entry_it_makes),
        cmocka_unit_test(only_what_is_for_good_and_has_an_address_suppresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
