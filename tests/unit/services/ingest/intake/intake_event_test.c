// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/codec/event.h"
#include "common/domain/domain_event.h"
#include "services/ingest/intake/intake_event.h"

static Arena *arena;
static IntakeRefusal refusal;

static int open_arena(void **state)
{
    (void)state;
    arena = arena_new(0);
    return 0;
}

static int close_arena(void **state)
{
    (void)state;
    arena_free(arena);
    return 0;
}

static bool read(const char *subject, const BusHeader *headers, size_t count, BusOut *ret)
{
    Str tenant;
    refusal = (IntakeRefusal){0};
    return intake_read(
        &(IntakeMessage){
            .subject = str_from(subject),
            .payload = STR("x"),
            .headers = headers,
            .header_count = count},
        arena, &tenant, ret, &refusal);
}

static Str stored_id(const char *subject, const char *id)
{
    BusOut out;
    BusHeader header = {"Nats-Msg-Id", str_from(id)};
    assert_true(read(subject, &header, 1, &out));
    return out.event_id;
}

static void finding_12_an_id_is_one_of_its_tenant_and_type(void **state)
{
    (void)state;
    assert_true(str_eq(stored_id("in.evt.acme.notify", "order-17"), STR("acme/notify/order-17")));
    assert_true(str_eq(stored_id("in.evt.beta.notify", "order-17"), STR("beta/notify/order-17")));
    assert_true(
        str_eq(stored_id("in.evt.acme.order.made", "order-17"), STR("acme/order.made/order-17")));
    // One that takes another's prefix has its own before it.
    assert_true(str_eq(
        stored_id("in.evt.beta.notify", "acme/notify/order-17"),
        STR("beta/notify/acme/notify/order-17")));
    assert_true(str_eq( // with its own it is the same
        stored_id("in.evt.acme.notify", "acme/notify/order-17"), STR("acme/notify/order-17")));
}

// Straight from the operator or through the account, readers see the same id.
static void finding_12_readers_see_the_publishers_own_id(void **state)
{
    (void)state;
    static const char *const ids[] = {
        "order-17", "acme/notify/order-17", "acme/notify/", "beta/notify/x", "/", "\xff\xfe"};
    char longest[200];
    memset(longest, 'i', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    Str acme = STR("acme"), notify = STR("notify");
    for (size_t i = 0; i <= sizeof ids / sizeof ids[0]; i++) {
        const char *id = i < sizeof ids / sizeof ids[0] ? ids[i] : longest;
        Str direct = domain_identity(domain_own_id(acme, notify, str_from(id)), arena);
        Str stored = stored_id("in.evt.acme.notify", id);
        Str through = domain_identity(domain_own_id(acme, notify, stored), arena);
        assert_true(str_eq(direct, through));
        assert_true(stored.len < 256);
    }
    assert_true(str_eq(domain_own_id(acme, notify, STR("acme/notify/a")), STR("a")));
    assert_true(str_eq(domain_own_id(acme, notify, STR("acme/paid/a")), STR("acme/paid/a")));
}

static void without_an_id_it_gets_one_that_is_its_alone(void **state)
{
    (void)state;
    BusOut first, second;
    assert_true(read("in.evt.acme.notify", NULL, 0, &first));
    assert_true(read("in.evt.acme.notify", NULL, 0, &second));
    assert_false(str_eq(first.event_id, second.event_id));
    assert_int_equal(first.header_count, 1);
    assert_string_equal(first.headers[0].name, DOMAIN_MADE_ID_HEADER);
}

static void finding_12_what_an_outsider_may_not_say_is_left_out(void **state)
{
    (void)state;
    const BusHeader headers[] = {
        {"Content-Type", STR("application/json")},
        {"ce-id", STR("c")},
        {"ce-stentorseen", STR("2020-01-01T00:00:00Z")},
        {"traceparent", STR("t")},
        {"Stentor-Type", STR("stentor.v1.PlaceOrder")},
        {"Stentor-Replay", STR("run")},
        {"stentor-replay", STR("run")},
        {"Stentor-Made-Id", STR("1")},
        {"Nats-Request-Info", STR("{}")},
        {"Nats-Expected-Stream", STR("EVENTS")},
        {"Nats-Msg-Id", STR("e")},
        {"X-Own", STR("kept")}};
    static const char *const kept[] = {
        "Content-Type", "ce-id", "traceparent", "Stentor-Type", "X-Own"};
    BusOut out;
    assert_true(read("in.evt.acme.paid", headers, sizeof headers / sizeof headers[0], &out));
    assert_string_equal(out.subject, "evt.acme.paid");
    assert_true(out.once);
    assert_int_equal(out.header_count, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_string_equal(out.headers[i].name, kept[i]);
    }
}

static void a_condition_on_the_stream_is_refused_by_name(void **state)
{
    (void)state;
    static const char *const names[] = {
        "Nats-Expected-Last-Sequence", "Nats-Expected-Last-Msg-Id", "nats-expected-stream",
        "Nats-Rollup"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        BusOut out;
        BusHeader header = {names[i], STR("sub")};
        assert_false(read("in.evt.acme.paid", &header, 1, &out));
        assert_int_equal(refusal.code, 400);
        assert_non_null(strstr(refusal.text, names[i]));
    }
}

static void what_is_no_event_is_refused_with_the_reason(void **state)
{
    (void)state;
    static const char *const bad[][2] = {{"in.evt.acme", "must be evt.<tenant>.<type>"},
                                         {"in.evt", "must be evt.<tenant>.<type>"},
                                         {"in.evt.Acme.paid", "with a tenant of"},
                                         {"in.evt._x.paid", "with a tenant of"},
                                         {"in.evt.acme.pa:id", "event's type must be"},
                                         {"in.evt.acme.a..b", "event's type must be"},
                                         {"in", "must be evt.<tenant>.<type>"},
                                         {"", "must be evt.<tenant>.<type>"}};
    BusOut out;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (read(bad[i][0], NULL, 0, &out) || strstr(refusal.text, bad[i][1]) == NULL) {
            fail_msg("'%s': '%s' instead of '%s'", bad[i][0], refusal.text, bad[i][1]);
        }
    }
    Str tenant;
    Str large = str_of(arena_zalloc(arena, EVENT_BYTES_MAX + 1), EVENT_BYTES_MAX + 1);
    assert_false(intake_read(
        &(IntakeMessage){.subject = STR("in.evt.acme.paid"), .payload = large}, arena, &tenant,
        &out, &refusal));
    assert_string_equal(refusal.text, "the payload has 921601 bytes; at most 921600");
}

static void the_answers_are_jetstreams(void **state)
{
    (void)state;
    assert_true(str_eq(intake_ack(7, false, arena), STR("{\"stream\":\"EVENTS\",\"seq\":7}")));
    assert_true(str_eq(
        intake_ack(7, true, arena), STR("{\"stream\":\"EVENTS\",\"seq\":7,\"duplicate\":true}")));
    refusal = (IntakeRefusal){503, "full \"up\""};
    assert_true(str_eq(
        intake_error(&refusal, arena),
        STR("{\"error\":{\"code\":503,\"description\":\"full \\\"up\\\"\"},\"stream\":\"EVENTS\","
            "\"seq\":0}")));
}

static void what_begins_as_a_sealed_event_is_refused(void **state)
{
    (void)state;
    Str tenant;
    BusOut out;
    refusal = (IntakeRefusal){0};
    IntakeMessage message = {
        .subject = STR("in.evt.acme.stay"),
        .payload = STR("\xff"
                       "SE1\x0a")};
    assert_false(intake_read(&message, arena, &tenant, &out, &refusal));
    assert_int_equal(refusal.code, 400);
    assert_non_null(strstr(refusal.text, "publish the event itself"));
    message.payload = STR("\xff"
                          "SE");
    assert_true(intake_read(&message, arena, &tenant, &out, &refusal));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finding_12_an_id_is_one_of_its_tenant_and_type),
        cmocka_unit_test(finding_12_readers_see_the_publishers_own_id),
        cmocka_unit_test(without_an_id_it_gets_one_that_is_its_alone),
        cmocka_unit_test(finding_12_what_an_outsider_may_not_say_is_left_out),
        cmocka_unit_test(a_condition_on_the_stream_is_refused_by_name),
        cmocka_unit_test(what_is_no_event_is_refused_with_the_reason),
        cmocka_unit_test(the_answers_are_jetstreams),
        cmocka_unit_test(what_begins_as_a_sealed_event_is_refused),
    };
    return cmocka_run_group_tests(tests, open_arena, close_arena);
}
