// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/base/clock.h"
#include "common/codec/event.h"
#include "common/domain/domain_event.h"
#include "common/domain/domain_message.h"
#include "stentor/v1/order.pb-c.h"
#include "stentor/v1/status.pb-c.h"

#define NOW_US INT64_C(1795199136000000)
#define DAY_US INT64_C(86400000000)

static DomainInput input_of(const char *payload)
{
    return (DomainInput){
        .tenant = STR("acme"),
        .type = STR("stay.confirmed"),
        .payload = str_from(payload),
        .stream = "EVENTS",
        .sequence = 42,
        .stored_at_us = NOW_US,
    };
}

static DomainEvent read_good(const DomainInput *input, Arena *arena)
{
    DomainEvent event;
    Error err = {0};
    if (!domain_event_read(input, arena, &event, &err)) {
        fail_msg("%s", err.text);
    }
    return event;
}

static void a_plain_object_is_its_own_data(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    DomainInput input = input_of("{\"a\": 19.99, \"b\": [1]}");
    DomainEvent event = read_good(&input, arena);
    assert_true(str_eq(event.variables, STR("{\"a\":19.99,\"b\":[1]}")));
    assert_true(str_eq(event.identity, STR("EVENTS/42")));
    assert_int_equal(event.produced_at_us, NOW_US);
    assert_int_equal(event.id_at_us, NOW_US);
    assert_int_equal(event.only.len, 0);
    domain_event_free(&event);
    arena_free(arena);
}

#define CLOUD                                                                                      \
    "{\"specversion\":\"1.0\",\"id\":\"c-1\",\"type\":\"t\",\"time\":\"2026-11-20T10:00:00Z\","    \
    "\"data\":{\"a\":1}}"

static void a_cloudevent_says_who_it_is_and_when_it_was(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    int64_t at_us = 0;
    assert_true(clock_parse(STR("2026-11-20T10:00:00Z"), &at_us));
    DomainInput structured = input_of(CLOUD);
    DomainInput binary = input_of("{\"a\":1}");
    binary.ce_version = STR("1.0");
    binary.ce_id = STR("c-1");
    binary.ce_time = STR("2026-11-20T10:00:00Z");
    const DomainInput *both[] = {&structured, &binary};
    for (size_t i = 0; i < 2; i++) {
        DomainEvent event = read_good(both[i], arena);
        assert_true(str_eq(event.identity, STR("c-1")));
        assert_int_equal(event.produced_at_us, at_us);
        assert_true(str_eq(event.variables, STR("{\"a\":1}")));
        domain_event_free(&event);
    }
    arena_free(arena);
}

static void cloudevents_are_distinguished_by_source_and_id(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    DomainInput structured = input_of(
        "{\"specversion\":\"1.0\",\"id\":\"1\",\"source\":\"/shop\",\"type\":\"t\",\"data\":{}}");
    DomainInput binary = input_of("{}");
    binary.ce_version = STR("1.0");
    binary.ce_id = STR("1");
    binary.ce_source = STR("/till");
    DomainEvent first = read_good(&structured, arena);
    DomainEvent second = read_good(&binary, arena);
    assert_true(str_eq(first.identity, STR("/shop 1")));
    assert_true(str_eq(second.identity, STR("/till 1")));
    // And its letter is the same event still.
    DomainInput letter = input_of("");
    letter.payload = domain_event_letter(&first, STR("welcome"), arena);
    DomainEvent again = read_good(&letter, arena);
    assert_true(str_eq(again.identity, first.identity));
    domain_event_free(&first);
    domain_event_free(&second);
    domain_event_free(&again);
    arena_free(arena);
}

static void it_was_seen_when_its_cause_was_and_never_later(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        int64_t at_us;
    } CASES[] = {
        {"", NOW_US},
        {"2026-11-20T10:00:00Z", 0},
        {"2099-01-01T00:00:00Z", NOW_US},
        {"yesterday", NOW_US},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        Arena *arena = arena_new(0);
        DomainInput input = input_of("{}");
        input.ce_version = STR("1.0");
        input.ce_seen = str_from(CASES[i].header);
        DomainEvent event = read_good(&input, arena);
        int64_t want_us = CASES[i].at_us;
        assert_true(want_us != 0 || clock_parse(input.ce_seen, &want_us));
        assert_int_equal(event.seen_at_us, want_us);
        domain_event_free(&event);
        arena_free(arena);
    }
}

static void the_message_id_comes_first_and_a_replays_own_last(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    DomainInput input = input_of(CLOUD);
    input.message_id = STR("m-1");
    DomainEvent event = read_good(&input, arena);
    assert_true(str_eq(event.identity, STR("m-1")));
    domain_event_free(&event);
    input.message_id = STR("EVENTS/41");
    input.replayed = true;
    event = read_good(&input, arena);
    assert_true(str_eq(event.identity, STR("c-1")));
    domain_event_free(&event);
    input = input_of("{}");
    input.message_id = STR("EVENTS/41");
    input.replayed = true;
    event = read_good(&input, arena);
    assert_true(str_eq(event.identity, STR("EVENTS/41")));
    domain_event_free(&event);
    char longest[300];
    memset(longest, 'x', sizeof longest);
    input.message_id = str_of(longest, sizeof longest);
    event = read_good(&input, arena);
    assert_int_equal(event.identity.len, 64); // its hash
    domain_event_free(&event);
    arena_free(arena);
}

static void the_time_is_the_datas_own_without_another(void **state)
{
    (void)state;
    static const struct {
        const char *payload;
        const char *at; // NULL: the stream's
    } CASES[] = {
        {"{\"produced_at\":\"2026-11-19T08:00:00Z\"}", "2026-11-19T08:00:00.000000Z"},
        {"{\"occurred_at\":\"2026-11-19T08:00:00+01:00\"}", "2026-11-19T07:00:00.000000Z"},
        {"{\"produced_at\":\"noon\",\"occurred_at\":\"2026-11-19T08:00:00Z\"}",
         "2026-11-19T08:00:00.000000Z"},
        {"{\"occurredAt\":\"2026-11-19T08:00:00Z\"}", "2026-11-19T08:00:00.000000Z"},
        {"{\"produced_at\":1795199136}", NULL},
        {"{}", NULL},
    };
    Arena *arena = arena_new(0);
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        DomainInput input = input_of(CASES[i].payload);
        DomainEvent event = read_good(&input, arena);
        char text[CLOCK_RFC3339_SIZE];
        clock_format(event.produced_at_us, text);
        if (CASES[i].at != NULL) {
            assert_string_equal(text, CASES[i].at);
        } else {
            assert_int_equal(event.produced_at_us, NOW_US);
        }
        domain_event_free(&event);
    }
    arena_free(arena);
}

// A time in an id decides in which partition its rows are, so a foreign one is believed within
// bounds only.
static void ids_have_the_events_time_while_it_is_near(void **state)
{
    (void)state;
    static const struct {
        int64_t produced_us;
        int64_t id_us;
    } CASES[] = {
        {NOW_US - 5 * DAY_US, NOW_US - 5 * DAY_US},
        {NOW_US - 8 * DAY_US, NOW_US},
        {NOW_US + 30000000, NOW_US + 30000000},
        {NOW_US + DAY_US, NOW_US},
    };
    Arena *arena = arena_new(0);
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        char time[CLOCK_RFC3339_SIZE];
        clock_format(CASES[i].produced_us, time);
        DomainInput input = input_of("{}");
        input.ce_version = STR("1.0");
        input.ce_time = str_from(time);
        DomainEvent event = read_good(&input, arena);
        assert_int_equal(event.produced_at_us, CASES[i].produced_us);
        assert_int_equal(event.id_at_us, CASES[i].id_us);
        domain_event_free(&event);
    }
    arena_free(arena);
}

static void a_letter_read_again_is_the_same_event_for_one_trigger(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    DomainInput input =
        input_of("{\"a\":{\"b\":\"G\xc3\xbcl\"},\"occurred_at\":\"2020-01-01T00:00:00Z\"}");
    input.message_id = STR("m-1");
    DomainEvent first = read_good(&input, arena);
    DomainInput again = input_of("");
    again.payload = domain_event_letter(&first, STR("remind"), arena);
    again.message_id = STR("m-1");
    again.sequence = 4711;
    again.stored_at_us = NOW_US + 60 * DAY_US;
    DomainEvent second = read_good(&again, arena);
    assert_true(str_eq(second.only, STR("remind")));
    assert_true(str_eq(second.identity, first.identity));
    assert_true(str_eq(second.variables, first.variables));
    assert_int_equal(second.produced_at_us, first.produced_at_us);
    assert_int_equal(first.id_at_us, NOW_US);
    assert_int_equal(second.id_at_us, first.id_at_us);
    domain_event_free(&first);
    domain_event_free(&second);
    arena_free(arena);
}

static Str packed_order(Arena *arena)
{
    Stentor__V1__PlaceOrder order;
    stentor__v1__place_order__init(&order);
    order.order_id = arena_cstr(arena, STR("o-1"));
    order.email = arena_cstr(arena, STR("a@example.com"));
    order.total_micros = 19990000;
    Str bytes = STR_EMPTY;
    assert_true(event_pack(&order.base, arena, &bytes, NULL));
    return bytes;
}

static void a_protobuf_message_becomes_the_same_json(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    DomainInput by_header = input_of("");
    by_header.payload = packed_order(arena);
    by_header.content_type = STR("application/protobuf; charset=x");
    DomainInput by_type = by_header;
    DomainInput by_subject = by_header;
    by_header.message_type = STR("stentor.v1.PlaceOrder");
    by_type.ce_type = STR("stentor.v1.PlaceOrder");
    by_subject.type = STR("PlaceOrder");
    const DomainInput *all[] = {&by_header, &by_type, &by_subject};
    for (size_t i = 0; i < 3; i++) {
        DomainEvent event = read_good(all[i], arena);
        assert_true(str_eq(
            event.variables,
            STR("{\"order_id\":\"o-1\",\"full_name\":\"\",\"email\":\"a@example.com\","
                "\"total_micros\":19990000,\"currency\":\"\",\"correlation_id\":\"\",\"lines\":[],"
                "\"total\":19.99}")));
        domain_event_free(&event);
    }
    arena_free(arena);
}

// Another message, for kinds of fields that the orders do not have.
static void nested_repeated_and_enumerated_fields_have_their_json(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    Stentor__V1__NotificationStatus status;
    Stentor__V1__Meta meta;
    stentor__v1__notification_status__init(&status);
    stentor__v1__meta__init(&meta);
    meta.tenant = arena_cstr(arena, STR("acme"));
    status.meta = &meta;
    status.channel = STENTOR__V1__CHANNEL__CHANNEL_SMS;
    status.priority = (Stentor__V1__Priority)77;
    status.address_hash = pb_data(STR("\x01\x02"));
    Str bytes = STR_EMPTY;
    assert_true(event_pack(&status.base, arena, &bytes, NULL));
    json_t *json =
        domain_message_json(&stentor__v1__notification_status__descriptor, bytes, arena, NULL);
    const json_t *inner = json_object_get(json, "meta");
    assert_string_equal(json_string_value(json_object_get(inner, "tenant")), "acme");
    assert_string_equal(json_string_value(json_object_get(json, "channel")), "CHANNEL_SMS");
    assert_int_equal(json_integer_value(json_object_get(json, "priority")), 77);
    assert_string_equal(json_string_value(json_object_get(json, "address_hash")), "AQI");
    assert_int_equal(json_integer_value(json_object_get(json, "accepted_at_us")), 0);
    json_decref(json);
    arena_free(arena);
}

typedef struct BadCase {
    const char *payload;
    const char *content_type;
    const char *words;
} BadCase;

static void what_cannot_be_read_says_why(void **state)
{
    (void)state;
    static const BadCase CASES[] = {
        {"", "", "not JSON"},
        {"{\"a\":", "", "line 1"},
        {"[]", "", "not an object"},
        {"{\"specversion\":\"1.0\",\"type\":\"t\",\"data\":{}}", "", "'id'"},
        {"{\"specversion\":\"1.0\",\"id\":\"i\",\"data\":{}}", "", "'type'"},
        {"{\"specversion\":\"1.0\",\"id\":\"i\",\"type\":\"t\"}", "", "'data'"},
        {"{\"specversion\":\"1.0\",\"id\":\"i\",\"type\":\"t\",\"time\":\"x\",\"data\":{}}", "",
         "'time'"},
        {"x", "application/protobuf", "unknown message"},
    };
    Arena *arena = arena_new(0);
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        DomainInput input = input_of(CASES[i].payload);
        input.content_type = str_from(CASES[i].content_type);
        DomainEvent event;
        Error err = {0};
        assert_false(domain_event_read(&input, arena, &event, &err));
        assert_int_equal(err.kind, ERROR_PERMANENT);
        if (strstr(err.text, CASES[i].words) == NULL) {
            fail_msg("case %zu: %s", i, err.text);
        }
    }
    arena_free(arena);
}

// ---- MassTransit ----

#define ENVELOPE                                                                                   \
    "{\"messageId\":\"m-1\",\"correlationId\":\"c-1\",\"messageType\":["                           \
    "\"urn:message:BookWorm.Contracts:PlaceOrderCommand\",\"urn:message:BookWorm:IOrder\"],"       \
    "\"message\":{\"orderId\":\"o-1\",\"totalMoney\":19.99},"                                      \
    "\"sentTime\":\"2026-11-20T10:00:00.1234567Z\",\"headers\":{\"x\":1}}"

static DomainInput order_input(const char *type, const char *payload)
{
    DomainInput input = input_of(payload);
    input.type = str_from(type);
    return input;
}

static void an_envelope_is_opened_by_its_urns_or_its_content_type(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    int64_t at_us = 0;
    assert_true(clock_parse(STR("2026-11-20T10:00:00.123456Z"), &at_us));
    static const char *const types[] = {"PlaceOrderCommand", "PlaceOrder", "my.own"};
    for (size_t i = 0; i < 6; i++) {
        DomainInput input = order_input(types[i % 3], ENVELOPE);
        input.content_type =
            i < 3 ? STR_EMPTY : STR("application/vnd.masstransit+json; charset=utf-8");
        DomainEvent event = read_good(&input, arena);
        assert_true(str_eq(event.type, i % 3 == 2 ? STR("my.own") : STR("PlaceOrder")));
        assert_true(str_eq(event.identity, STR("m-1")));
        assert_int_equal(event.produced_at_us, at_us);
        assert_true(str_eq(
            event.variables,
            i % 3 == 2
                ? STR("{\"orderId\":\"o-1\",\"totalMoney\":19.99,\"correlation_id\":\"c-1\"}")
                : STR("{\"orderId\":\"o-1\",\"totalMoney\":19.99,\"correlation_id\":\"c-1\","
                      "\"total\":19.99}")));
        domain_event_free(&event);
    }
    arena_free(arena);
}

static void a_messages_own_correlation_and_the_message_id_come_first(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    DomainInput input = order_input(
        "PlaceOrder", "{\"MessageType\":[\"urn:message:A:PlaceOrder\"],\"CorrelationId\":\"c-1\","
                      "\"Message\":{\"CorrelationId\":\"c-2\"}}");
    input.message_id = STR("nats-1");
    DomainEvent event = read_good(&input, arena);
    assert_true(str_eq(event.identity, STR("nats-1")));
    assert_true(str_eq(event.variables, STR("{\"CorrelationId\":\"c-2\"}")));
    assert_int_equal(event.produced_at_us, NOW_US);
    domain_event_free(&event);
    arena_free(arena);
}

// Its URNs name another order event than the subject does: it would send the wrong mail.
static void a_bad_envelope_says_what_is_wrong(void **state)
{
    (void)state;
    static const BadCase CASES[] = {
        {"{\"messageType\":[\"urn:message:A:CancelOrder\"],\"message\":{}}", "", "is CancelOrder"},
        {"{\"messageType\":[\"urn:message:A:X\",\"urn:message:A:CancelOrderCommand\"],"
         "\"message\":{}}",
         "", "is CancelOrder"},
        {"{\"messageType\":[\"urn:message:A:PlaceOrder\"]}", "", "'message' must be an object"},
        {"{\"messageType\":[\"urn:message:A:PlaceOrder\"],\"message\":{},\"messageId\":1}", "",
         "'messageId' must be text"},
        {"{\"messageType\":[\"urn:message:A:PlaceOrder\"],\"message\":{},\"sentTime\":\"noon\"}",
         "", "'sentTime'"},
        {"{\"orderId\":1}", "application/vnd.masstransit+json", "'messageType'"},
    };
    Arena *arena = arena_new(0);
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        DomainInput input = order_input("PlaceOrderCommand", CASES[i].payload);
        input.content_type = str_from(CASES[i].content_type);
        DomainEvent event;
        Error err = {0};
        assert_false(domain_event_read(&input, arena, &event, &err));
        assert_int_equal(err.kind, ERROR_PERMANENT);
        if (strstr(err.text, CASES[i].words) == NULL) {
            fail_msg("case %zu: %s", i, err.text);
        }
    }
    arena_free(arena);
}

static void an_order_event_in_json_has_the_amounts_of_protobuf(void **state)
{
    (void)state;
    static const struct {
        const char *type, *payload, *variables;
    } CASES[] = {
        {"CancelOrderCommand", "{\"TotalMoney\":\"59.90\",\"refund_micros\":12500000}",
         "{\"TotalMoney\":\"59.90\",\"refund_micros\":12500000,\"total\":\"59.90\",\"refund\":12."
         "5}"},
        {"PlaceOrder", "{\"total_money\":5,\"Total\":6}", "{\"total_money\":5,\"Total\":6}"},
        {"PlaceOrder", "{\"Lines\":[{\"priceMicros\":1500000},7]}",
         "{\"Lines\":[{\"priceMicros\":1500000,\"price\":1.5},7]}"},
        {"invoice.made", "{\"total_micros\":5}", "{\"total_micros\":5}"},
    };
    Arena *arena = arena_new(0);
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        DomainInput input = order_input(CASES[i].type, CASES[i].payload);
        DomainEvent event = read_good(&input, arena);
        if (!str_eq(event.variables, str_from(CASES[i].variables))) {
            fail_msg("case %zu: " STR_FMT, i, STR_ARG(event.variables));
        }
        domain_event_free(&event);
    }
    arena_free(arena);
}

static void data_may_be_64_kib_and_not_more(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    for (size_t more = 0; more < 2; more++) {
        size_t size = DOMAIN_DATA_MAX + more;
        char *text = arena_alloc(arena, size + 1);
        memset(text, 'x', size);
        memcpy(text, "{\"a\":\"", 6);
        memcpy(text + size - 2, "\"}", 3);
        DomainInput input = input_of(text);
        DomainEvent event;
        Error err = {0};
        assert_int_equal(domain_event_read(&input, arena, &event, &err), more == 0);
        if (more == 0) {
            domain_event_free(&event);
        } else {
            assert_non_null(strstr(err.text, "at most 65536"));
        }
    }
    arena_free(arena);
}

static void a_message_sent_again_without_its_headers_is_known_by_its_subject(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    Stentor__V1__StatusChanged message;
    stentor__v1__status_changed__init(&message);
    message.order_id = (char *)(uintptr_t) "6f1c9a52-9f0e-4f43-8a37-2f5a3c1d0e11";
    message.status = (char *)(uintptr_t) "Completed";
    DomainInput input = input_of("");
    Error err = {0};
    assert_true(event_pack(&message.base, arena, &input.payload, &err));
    DomainEvent event;
    input.type = STR("StatusChanged");
    assert_true(domain_event_read(&input, arena, &event, &err));
    assert_string_equal(json_string_value(json_object_get(event.data, "status")), "Completed");
    domain_event_free(&event);
    input.type = STR("something.else");
    assert_false(domain_event_read(&input, arena, &event, &err));
    assert_non_null(strstr(err.text, "not JSON"));
    input.type = STR("StatusChanged");
    input.payload = STR(" {\"status\": 1}");
    assert_true(domain_event_read(&input, arena, &event, &err));
    domain_event_free(&event);
    arena_free(arena);
}

static void a_subject_names_tenant_and_type(void **state)
{
    (void)state;
    Str tenant = STR_EMPTY;
    Str type = STR_EMPTY;
    assert_true(domain_subject(STR("evt.acme.order.placed"), &tenant, &type));
    assert_true(str_eq(tenant, STR("acme")));
    assert_true(str_eq(type, STR("order.placed")));
    assert_false(domain_subject(STR("evt.acme"), &tenant, &type));
    assert_false(domain_subject(STR("evt.ACME.notify"), &tenant, &type));
    assert_false(domain_subject(STR("ntf.acme.notify"), &tenant, &type));
    assert_false(domain_subject(STR(""), &tenant, &type));
}

static void why_json_cannot_be_read_quotes_none_of_it(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    DomainInput input = input_of("{\"name\": \"Zebedee Quill\", \"n\": 1 2}");
    DomainEvent event;
    Error err = {0};
    assert_false(domain_event_read(&input, arena, &event, &err));
    assert_non_null(strstr(err.text, "line 1, column 34"));
    input = input_of("{\"name\" \"Zebedee Quill\"}");
    assert_false(domain_event_read(&input, arena, &event, &err));
    assert_null(strstr(err.text, "Zebedee"));
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plain_object_is_its_own_data),
        cmocka_unit_test(why_json_cannot_be_read_quotes_none_of_it),
        cmocka_unit_test(a_cloudevent_says_who_it_is_and_when_it_was),
        cmocka_unit_test(cloudevents_are_distinguished_by_source_and_id),
        cmocka_unit_test(it_was_seen_when_its_cause_was_and_never_later),
        cmocka_unit_test(the_message_id_comes_first_and_a_replays_own_last),
        cmocka_unit_test(the_time_is_the_datas_own_without_another),
        cmocka_unit_test(ids_have_the_events_time_while_it_is_near),
        cmocka_unit_test(a_letter_read_again_is_the_same_event_for_one_trigger),
        cmocka_unit_test(a_protobuf_message_becomes_the_same_json),
        cmocka_unit_test(nested_repeated_and_enumerated_fields_have_their_json),
        cmocka_unit_test(what_cannot_be_read_says_why),
        cmocka_unit_test(a_message_sent_again_without_its_headers_is_known_by_its_subject),
        cmocka_unit_test(a_subject_names_tenant_and_type),
        cmocka_unit_test(an_envelope_is_opened_by_its_urns_or_its_content_type),
        cmocka_unit_test(a_messages_own_correlation_and_the_message_id_come_first),
        cmocka_unit_test(a_bad_envelope_says_what_is_wrong),
        cmocka_unit_test(an_order_event_in_json_has_the_amounts_of_protobuf),
        cmocka_unit_test(data_may_be_64_kib_and_not_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
