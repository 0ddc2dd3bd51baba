// SPDX-License-Identifier: Apache-2.0

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/bus/events/status_event.h"
#include "common/codec/event.h"

static Stentor__V1__Meta meta;
static Stentor__V1__NotificationStatus status;
static Arena *arena;

static int fill(void **state)
{
    (void)state;
    arena = arena_new(0);
    stentor__v1__meta__init(&meta);
    stentor__v1__notification_status__init(&status);
    meta.event_id = arena_cstr(arena, STR("abcdefghijklmnopqrstuv"));
    meta.tenant = arena_cstr(arena, STR("acme"));
    meta.notification_id = arena_cstr(arena, STR("ntf_01ARZ3NDEKTSV4RRFFQ69G5FAV"));
    meta.occurred_at_us = 1700000000123456;
    status.meta = &meta;
    status.channel = STENTOR__V1__CHANNEL__CHANNEL_EMAIL;
    status.status = STENTOR__V1__STATUS__STATUS_SENT;
    return 0;
}

static int empty(void **state)
{
    (void)state;
    arena_free(arena);
    return 0;
}

static void assert_header(const BusOut *out, const char *name, const char *value)
{
    for (size_t i = 0; i < out->header_count; i++) {
        if (strcmp(out->headers[i].name, name) == 0) {
            assert_int_equal(out->headers[i].value.len, strlen(value));
            assert_memory_equal(out->headers[i].value.ptr, value, strlen(value));
            return;
        }
    }
    fail_msg("no header %s", name);
}

static void a_status_becomes_a_cloud_event(void **state)
{
    (void)state;
    BusOut out;
    Error err;
    assert_true(status_event(&status, STR("00-trace"), arena, &out, &err));
    assert_string_equal(out.subject, "ntf.status.acme.email.sent");
    assert_true(str_eq(out.event_id, STR("abcdefghijklmnopqrstuv")));
    assert_true(str_eq(out.traceparent, STR("00-trace")));
    assert_int_equal(out.header_count, 7);
    assert_header(&out, "ce-specversion", "1.0");
    assert_header(&out, "ce-id", "abcdefghijklmnopqrstuv");
    assert_header(&out, "ce-source", "/stentor/acme");
    assert_header(&out, "ce-type", "stentor.notification.sent.v1");
    assert_header(&out, "ce-time", "2023-11-14T22:13:20.123456Z");
    assert_header(&out, "ce-subject", "ntf_01ARZ3NDEKTSV4RRFFQ69G5FAV");
    assert_header(&out, "content-type", "application/protobuf");
    assert_non_null(
        event_unpack(&stentor__v1__notification_status__descriptor, out.payload, arena, &err));
}

static void assert_permanent(const char *part)
{
    BusOut out;
    Error err;
    assert_false(status_event(&status, STR_EMPTY, arena, &out, &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
    assert_non_null(strstr(err.text, part));
}

static void an_incomplete_status_is_refused_by_the_fields_name(void **state)
{
    (void)state;
    status.status = STENTOR__V1__STATUS__STATUS_UNSPECIFIED;
    assert_permanent("status");
    status.status = STENTOR__V1__STATUS__STATUS_SENT;
    status.channel = (Stentor__V1__Channel)99;
    assert_permanent("channel");
    meta.tenant = arena_cstr(arena, STR("a.b"));
    assert_permanent("meta.tenant");
    meta.event_id = arena_cstr(arena, STR_EMPTY);
    assert_permanent("meta.event_id");
    status.meta = NULL;
    assert_permanent("meta.event_id");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_status_becomes_a_cloud_event, fill, empty),
        cmocka_unit_test_setup_teardown(
            an_incomplete_status_is_refused_by_the_fields_name, fill, empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
