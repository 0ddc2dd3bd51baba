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
    request->priority = STENTOR__V1__PRIORITY__PRIORITY_LOW;
    request->template_ = arena_cstr(arena, STR("welcome"));
    deferred->work_case = STENTOR__V1__DEFERRED__WORK_REQUEST;
    deferred->request = request;
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

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_scheduled_request_goes_out_under_its_own_id),
        TEST(a_retry_goes_out_under_the_id_of_its_attempt),
        TEST(fields_that_we_do_not_know_go_through),
        TEST(bytes_that_are_no_deferred_are_refused),
        TEST(a_wrong_head_is_refused_by_its_field),
        TEST(work_that_does_not_fit_its_reason_is_refused),
        TEST(embedded_work_that_is_wrong_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
