// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "services/digest-flusher/status_emit.h"
#include "stentor/v1/request.pb-c.h"
#include "stentor/v1/status.pb-c.h"

#define TRACE "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
#define NTF_ID "ntf_01KAGTQ5M0000000000000000A"

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

static Str new_request(Arena *arena)
{
    Stentor__V1__NotificationRequest request;
    stentor__v1__notification_request__init(&request);
    Stentor__V1__Meta meta;
    stentor__v1__meta__init(&meta);
    meta.event_id = arena_cstr(arena, STR("requestrequest00000001"));
    meta.tenant = arena_cstr(arena, STR("demo"));
    meta.notification_id = arena_cstr(arena, STR(NTF_ID));
    meta.correlation_id = arena_cstr(arena, STR("mine"));
    meta.traceparent = arena_cstr(arena, STR(TRACE));
    request.meta = &meta;
    request.channel = STENTOR__V1__CHANNEL__CHANNEL_EMAIL;
    request.category = STENTOR__V1__CATEGORY__CATEGORY_SOCIAL;
    request.priority = STENTOR__V1__PRIORITY__PRIORITY_LOW;
    request.template_ = arena_cstr(arena, STR("liked"));
    request.batch_id = arena_cstr(arena, STR("dbt_1"));
    request.accepted_at_us = 5;
    Str bytes = STR_EMPTY;
    assert_true(event_pack(&request.base, arena, &bytes, NULL));
    return bytes;
}

static void an_absorbed_item_is_published_with_its_digest(void **state)
{
    Arena *arena = *state;
    StatusEmit emit = {
        .status = STR("superseded"),
        .reason_code = STR("digest"),
        .window_id = STR("dgw_windowwindowwindow0001"),
        .at_us = 9000000,
        .payload = new_request(arena)};
    BusOut out;
    Error err = {0};
    if (!status_emit(&emit, arena, &out, &err)) {
        fail_msg("%s", err.text);
    }
    assert_string_equal(out.subject, "ntf.status.demo.email.superseded");
    char expected[EVENT_ID_SIZE];
    event_id_derive("status", STR(NTF_ID), STR("superseded/0"), expected);
    assert_true(str_eq(out.event_id, str_from(expected)));
    assert_true(str_eq(out.traceparent, STR(TRACE)));
    assert_true(out.header_count > 0);
    const Stentor__V1__NotificationStatus *status =
        (const Stentor__V1__NotificationStatus *)event_unpack(
            &stentor__v1__notification_status__descriptor, out.payload, arena, NULL);
    assert_int_equal(status->status, STENTOR__V1__STATUS__STATUS_SUPERSEDED);
    assert_string_equal(status->reason_code, "digest");
    assert_string_equal(status->digest_window_id, "dgw_windowwindowwindow0001");
    assert_string_equal(status->template_, "liked");
    assert_string_equal(status->batch_id, "dbt_1");
    assert_string_equal(status->meta->correlation_id, "mine");
    assert_string_equal(status->meta->causation_id, "requestrequest00000001");
    assert_int_equal(status->meta->occurred_at_us, 9000000);
    assert_int_equal(status->accepted_at_us, 5);
    assert_int_equal(status->resends, 0);
}

static void what_cannot_be_published_is_refused(void **state)
{
    Arena *arena = *state;
    BusOut out;
    Error err = {0};
    StatusEmit emit = {.status = STR("asleep"), .payload = new_request(arena)};
    assert_false(status_emit(&emit, arena, &out, &err));
    assert_non_null(strstr(err.text, "'asleep'"));
    emit = (StatusEmit){.status = STR("queued"), .payload = STR("\xff")};
    assert_false(status_emit(&emit, arena, &out, &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
    emit = (StatusEmit){.status = STR("queued"), .payload = STR_EMPTY};
    assert_false(status_emit(&emit, arena, &out, &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(an_absorbed_item_is_published_with_its_digest),
        TEST(what_cannot_be_published_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
