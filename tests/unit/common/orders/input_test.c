// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/codec/event.h"
#include "common/orders/input.h"
#include "stentor/v1/order.pb-c.h"

#define ORDER "6f1c9a52-9f0e-4f43-8a37-2f5a3c1d0e11"
#define OTHER "00000000-0000-4000-8000-000000000001"
#define AT_US INT64_C(1795199136000000)

static Arena *arena;

static int set_up(void **state)
{
    (void)state;
    arena = arena_new(0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    arena_free(arena);
    return 0;
}

static bool read_as(const char *type, Str payload, bool is_packed, SagaInput *ret, Error *err)
{
    DomainInput input = {
        .tenant = STR("acme"),
        .type = str_from(type),
        .payload = payload,
        .message_id = STR("m-1"),
        .stream = "EVENTS",
        .sequence = 7,
        .stored_at_us = AT_US,
        .content_type = is_packed ? STR("application/protobuf") : STR_EMPTY,
    };
    DomainEvent event;
    if (!domain_event_read(&input, arena, &event, err)) {
        return false;
    }
    bool ok = saga_input_read(&event, 7, arena, ret, err);
    domain_event_free(&event);
    return ok;
}

static SagaInput reads(const char *type, const char *json)
{
    SagaInput input;
    Error err = {0};
    if (!read_as(type, str_from(json), false, &input, &err)) {
        fail_msg("%s: %s", json, err.text);
    }
    return input;
}

static void refuses(const char *type, const char *json, const char *words)
{
    SagaInput input;
    Error err = {0};
    assert_false(read_as(type, str_from(json), false, &input, &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
    if (strstr(err.text, words) == NULL) {
        fail_msg("%s: '%s' does not say '%s'", json, err.text, words);
    }
}

static void a_check_out_is_read_in_every_spelling(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{\"order_id\":\"" ORDER "\",\"basket_id\":\"" OTHER
        "\",\"full_name\":\"Al Ice\",\"email\":\"al@EXAMPLE.com\","
        "\"total_micros\":59990000,\"currency\":\"EUR\"}",
        "{\"orderId\":\"" ORDER "\",\"basketId\":\"" OTHER
        "\",\"fullName\":\"Al Ice\",\"email\":\"al@example.com\","
        "\"totalMoney\":59.99,\"currency\":\"EUR\"}",
        "{\"OrderId\":\"6F1C9A52-9F0E-4F43-8A37-2F5A3C1D0E11\",\"BasketId\":\"" OTHER
        "\",\"FullName\":\"Al Ice\","
        "\"Email\":\"al@example.com\",\"TotalMoney\":\"59.990\",\"Currency\":\"EUR\","
        "\"CorrelationId\":null}",
        "{\"order_id\":\"" ORDER "\",\"orderId\":7,\"basket_id\":\"" OTHER
        "\",\"full_name\":\"Al Ice\",\"email\":\"al@example.com\","
        "\"total\":\"59.99\",\"currency\":\"EUR\"}",
    };
    static const char *const types[] = {
        "UserCheckedOut", "UserCheckedOutEvent", "UserCheckedOutIntegrationEvent"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        assert_true(saga_input_wants(str_from(types[i % 3])));
        SagaInput in = reads(types[i % 3], texts[i]);
        assert_true(str_eq(in.type, STR("UserCheckedOut")));
        assert_int_equal(in.kind, INPUT_CHECKED_OUT);
        assert_string_equal(in.order_id, ORDER);
        assert_string_equal(in.correlation_id, ORDER);
        assert_string_equal(in.basket_id, OTHER);
        assert_true(str_eq(in.full_name, STR("Al Ice")));
        assert_true(str_eq(in.email, STR("al@example.com")));
        assert_true(in.has_total && in.total_micros == 59990000);
        assert_string_equal(in.currency, "EUR");
        assert_true(in.sequence == 7 && in.received_at_us == AT_US && in.happened_at_us == AT_US);
    }
}

#define CHECK_OUT_OF(lines) "{\"order_id\":\"" ORDER "\",\"email\":\"al@example.com\"," lines "}"

static void lines_are_read_in_every_spelling(void **state)
{
    (void)state;
    static const char *const texts[] = {
        CHECK_OUT_OF("\"lines\":[{\"product_id\":\"7\",\"name\":\"Dune\",\"quantity\":2,"
                     "\"price_micros\":9990000},{}]"),
        CHECK_OUT_OF("\"Items\":[{\"ProductId\":7,\"Name\":\"Dune\",\"Quantity\":2,\"UnitPrice\":9.99},"
                     "{\"name\":null}]"),
        CHECK_OUT_OF("\"orderItems\":[{\"productId\":\"7\",\"name\":\"Dune\",\"quantity\":2,"
                     "\"price\":\"9.990\"},{\"quantity\":1}]"),
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        SagaInput in = reads("UserCheckedOut", texts[i]);
        assert_int_equal(in.line_count, 2);
        assert_true(str_eq(in.lines[0].product_id, STR("7")));
        assert_true(str_eq(in.lines[0].name, STR("Dune")));
        assert_true(in.lines[0].quantity == 2 && in.lines[0].price_micros == 9990000);
        assert_true(in.lines[1].quantity == 1 && in.lines[1].price_micros == 0);
        assert_int_equal(in.lines[1].name.len, 0);
    }
}

static void a_wrong_line_is_named(void **state)
{
    (void)state;
    refuses("UserCheckedOut", CHECK_OUT_OF("\"lines\":{}"), "field 'lines': must be an array");
    refuses(
        "UserCheckedOut", CHECK_OUT_OF("\"items\":[{},7]"), "field 'lines', line 2: must be an");
    refuses(
        "UserCheckedOut", CHECK_OUT_OF("\"lines\":[{\"quantity\":0}]"),
        "line 1: field 'quantity': must be");
    refuses(
        "UserCheckedOut", CHECK_OUT_OF("\"lines\":[{\"price\":\"1,5\"}]"), "line 1: field 'price'");
    refuses("UserCheckedOut", CHECK_OUT_OF("\"lines\":[{\"name\":7}]"), "line 1: field 'name'");
}

static void what_is_not_given_has_its_default(void **state)
{
    (void)state;
    SagaInput in = reads(
        "UserCheckedOut",
        "{\"order_id\":\"" ORDER "\",\"correlation_id\":\"" OTHER "\",\"email\":\"a@b.cd\"}");
    assert_string_equal(in.correlation_id, OTHER);
    assert_string_equal(in.currency, "USD");
    assert_string_equal(in.basket_id, "");
    assert_false(in.has_total);
}

static void protobuf_says_the_same(void **state)
{
    (void)state;
    Stentor__V1__UserCheckedOut message;
    stentor__v1__user_checked_out__init(&message);
    message.order_id = (char *)(uintptr_t)ORDER;
    message.email = (char *)(uintptr_t) "al@example.com";
    message.total_micros = 19990000;
    Str packed = STR_EMPTY;
    SagaInput in;
    Error err = {0};
    assert_true(event_pack(&message.base, arena, &packed, &err));
    assert_true(read_as("UserCheckedOut", packed, true, &in, &err));
    assert_string_equal(in.correlation_id, ORDER);
    assert_int_equal(in.total_micros, 19990000);
    assert_string_equal(in.currency, "USD");
}

static void amounts_have_two_decimals(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        int64_t micros; // -1: refused
    } CASES[] = {
        {"0", 0},
        {"19.99", 19990000},
        {"1e3", INT64_C(1000000000)},
        {"\"0.05\"", 50000},
        {"\"12.5\"", 12500000},
        {"\"1234567890.10\"", INT64_C(1234567890100000)},
        {"9000000000000", INT64_C(9000000000000000000)},
        {"4999999999.99", INT64_C(4999999999990000)},
        {"\"9000000000000.01\"", -1},
        {"9000000000001", -1},
        {"19.999", -1},
        {"\"19.999\"", -1},
        {"-1", -1},
        {"-0.01", -1},
        {"\"-1\"", -1},
        {"\"\"", -1},
        {"\".5\"", -1},
        {"\"5.\"", -1},
        {"\"1,5\"", -1},
        {"\"1.5.5\"", -1},
        {"\"99999999999999999999\"", -1},
        {"1e300", -1},
        {"true", -1},
        {"[]", -1},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        const char *json = arena_printf(
            arena, "{\"order_id\":\"" ORDER "\",\"email\":\"a@b.cd\",\"total_money\":%s}",
            CASES[i].json);
        if (CASES[i].micros < 0) {
            refuses("UserCheckedOut", json, "field 'total_money'");
            continue;
        }
        SagaInput in = reads("UserCheckedOut", json);
        if (in.total_micros != CASES[i].micros) {
            fail_msg("%s is %lld", CASES[i].json, (long long)in.total_micros);
        }
    }
}

static void a_status_says_what_became_of_the_order(void **state)
{
    (void)state;
    SagaInput in = reads(
        "StatusChanged",
        "{\"orderId\":\"" ORDER
        "\",\"status\":\"completed\",\"carrier\":\"DHL\",\"trackingNumber\":\"JD 14\"}");
    assert_int_equal(in.kind, INPUT_COMPLETED);
    assert_true(str_eq(in.carrier, STR("DHL")) && str_eq(in.tracking_number, STR("JD 14")));
    in = reads(
        "StatusChanged",
        "{\"orderId\":\"" ORDER
        "\",\"status\":\"Canceled\",\"reason\":\"no stock\",\"refundMoney\":\"9.50\"}");
    assert_int_equal(in.kind, INPUT_CANCELLED);
    assert_true(in.has_refund && in.refund_micros == 9500000);
    assert_true(str_eq(in.reason, STR("no stock")));
    assert_int_equal(reads("StatusChanged", "{\"status\":\"New\"}").kind, INPUT_PASSED);
}

static void what_waits_for_its_order_is_read_again(void **state)
{
    (void)state;
    SagaInput in = reads(
        "StatusChanged", "{\"order_id\":\"" ORDER "\",\"correlation_id\":\"" OTHER
                         "\",\"status\":\"Cancelled\",\"refund_micros\":500000,"
                         "\"reason\":\"too late\"}");
    SagaInput again;
    Error err = {0};
    assert_true(saga_input_unpack(
        saga_input_pack(&in, arena), in.tenant, in.message_id, 7, AT_US, arena, &again, &err));
    assert_int_equal(again.kind, INPUT_CANCELLED);
    assert_string_equal(again.correlation_id, OTHER);
    assert_true(again.has_refund && again.refund_micros == 500000);
    assert_true(str_eq(again.reason, STR("too late")) && str_eq(again.message_id, STR("m-1")));
    assert_false(saga_input_unpack(
        STR("\xff\xff"), in.tenant, in.message_id, 7, AT_US, arena, &again, &err));
}

static void a_wrong_field_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *type, *json, *words;
    } CASES[] = {
        {"UserCheckedOut", "{\"email\":\"a@b.cd\"}", "field 'order_id': is required"},
        {"UserCheckedOut", "{\"order_id\":\"17\",\"email\":\"a@b.cd\"}",
         "field 'order_id': must be a UUID"},
        {"UserCheckedOut", "{\"order_id\":17,\"email\":\"a@b.cd\"}",
         "field 'order_id': must be a UUID"},
        {"UserCheckedOut", "{\"correlation_id\":\"" ORDER "\",\"email\":\"a@b.cd\"}",
         "field 'order_id': is required"},
        {"UserCheckedOut",
         "{\"order_id\":\"" ORDER "\",\"correlation_id\":\"x\",\"email\":\"a@b.cd\"}",
         "field 'correlation_id'"},
        {"UserCheckedOut", "{\"order_id\":\"" ORDER "\"}", "field 'email': is required"},
        {"UserCheckedOut", "{\"order_id\":\"" ORDER "\",\"email\":\"a b@c.de\"}", "field 'email'"},
        {"UserCheckedOut",
         "{\"order_id\":\"" ORDER "\",\"email\":\"a@b.cd\",\"full_name\":\"a\\nb\"}",
         "field 'full_name': has a control"},
        {"UserCheckedOut", "{\"order_id\":\"" ORDER "\",\"email\":\"a@b.cd\",\"full_name\":[]}",
         "field 'full_name': must be text"},
        {"UserCheckedOut", "{\"order_id\":\"" ORDER "\",\"email\":\"a@b.cd\",\"currency\":\"eur\"}",
         "field 'currency'"},
        {"UserCheckedOut", "{\"order_id\":\"" ORDER "\",\"email\":\"a@b.cd\",\"currency\":\"EU\"}",
         "field 'currency'"},
        {"UserCheckedOut", "{\"order_id\":\"" ORDER "\",\"email\":\"a@b.cd\",\"total_micros\":5}",
         "field 'total_micros'"},
        {"StatusChanged", "{\"status\":\"Completed\"}", "field 'order_id': is required"},
        {"StatusChanged", "{\"order_id\":\"" ORDER "\",\"status\":\"Shipped\"}", "field 'status'"},
        {"StatusChanged", "{\"order_id\":\"" ORDER "\"}", "field 'status'"},
        {"StatusChanged",
         "{\"order_id\":\"" ORDER "\",\"status\":\"Cancelled\",\"refund_micros\":-1}",
         "field 'refund_micros'"},
        {"PlaceOrderTimeout", "{\"correlation_id\":\"" ORDER "\"}", "field 'token_id'"},
        {"PlaceOrderTimeout", "{\"token_id\":\"" ORDER "\"}", "field 'correlation_id'"},
        {"PlaceOrder", "{}", "the event type is not one that order-saga reads"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        refuses(CASES[i].type, CASES[i].json, CASES[i].words);
    }
}

static void a_derived_uuid_is_one_and_frozen(void **state)
{
    (void)state;
    char id[UUID_SIZE], read[UUID_SIZE];
    uuid_derive(STR("wait|acme|" ORDER "|0"), id);
    assert_true(uuid_read(str_from(id), read));
    assert_string_equal(id, read);
    assert_int_equal(id[14], '8');           // version
    assert_non_null(strchr("89ab", id[19])); // variant
    assert_false(uuid_read(STR("6f1c9a52x9f0e-4f43-8a37-2f5a3c1d0e11"), read));
    assert_string_equal(read, "");
    assert_false(uuid_read(STR("6f1c9a52-9f0e-4f43-8a37-2f5a3c1d0e1"), read));
    assert_false(uuid_read(STR("6f1c9a52-9f0e-4f43-8a37-2f5a3c1d0e1g"), read));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_check_out_is_read_in_every_spelling),
        TEST(lines_are_read_in_every_spelling),
        TEST(a_wrong_line_is_named),
        TEST(what_is_not_given_has_its_default),
        TEST(protobuf_says_the_same),
        TEST(amounts_have_two_decimals),
        TEST(a_status_says_what_became_of_the_order),
        TEST(what_waits_for_its_order_is_read_again),
        TEST(a_wrong_field_is_named),
        TEST(a_derived_uuid_is_one_and_frozen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
