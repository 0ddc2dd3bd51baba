// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/codec/event.h"
#include "services/gateway/scheduled/scheduled_view.h"
#include "stentor/v1/request.pb-c.h"

static char *text(Arena *arena, const char *value)
{
    return arena_cstr(arena, str_from(value));
}

static void expect(const ScheduledRow *row, Arena *arena, const char *wanted)
{
    json_t *want = json_loads(wanted, 0, NULL);
    json_t *made = scheduled_view(row, arena);
    assert_non_null(want);
    if (!json_equal(made, want)) {
        fail_msg("%s", json_dumps(made, 0));
    }
    json_decref(made);
    json_decref(want);
}

static void what_a_trigger_scheduled_names_its_subject_and_nothing_sealed(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    Stentor__V1__NotificationRequest request;
    stentor__v1__notification_request__init(&request);
    request.template_ = text(arena, "reminder");
    request.template_version = text(arena, "1.0.0");
    request.priority = STENTOR__V1__PRIORITY__PRIORITY_HIGH;
    request.trigger_key = text(arena, "remind");
    request.cancel_key = text(arena, "remind/stay/1"); // a subject may hold a '/'
    request.source_event_id = text(arena, "e-1");
    request.source_event_at_us = 1000000;
    request.accepted_at_us = 2000000;
    ScheduledRow row = {
        .id = STR("ntf_x"),
        .reason = STR("schedule"),
        .due_at_us = 3000000,
        .cancellable = true,
        .channel = STR("email"),
        .recipient_id = STR("rcp_x"),
    };
    assert_true(event_pack(&request.base, arena, &row.request, NULL));
    expect(
        &row, arena,
        "{\"id\":\"ntf_x\",\"reason\":\"schedule\",\"due_at\":\"1970-01-01T00:00:03.000000Z\","
        "\"cancellable\":true,\"channel\":\"email\",\"recipient_id\":\"rcp_x\","
        "\"template\":\"reminder\",\"template_version\":\"1.0.0\",\"priority\":\"high\","
        "\"trigger\":\"remind\",\"subject\":\"stay/1\",\"source_event_id\":\"e-1\","
        "\"source_event_at\":\"1970-01-01T00:00:01.000000Z\","
        "\"accepted_at\":\"1970-01-01T00:00:02.000000Z\"}");
    arena_free(arena);
}

static void a_retry_has_its_attempt_and_an_unreadable_request_is_left_out(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    ScheduledRow row = {
        .id = STR("ntf_x"), .reason = STR("retry"), .due_at_us = 3000000, .attempt = 3};
    expect(
        &row, arena,
        "{\"id\":\"ntf_x\",\"reason\":\"retry\",\"due_at\":\"1970-01-01T00:00:03.000000Z\","
        "\"cancellable\":false,\"attempt\":3}");
    row = (ScheduledRow){.id = STR("ntf_x"), .due_at_us = 3000000, .request = STR("\xff\xff")};
    expect(
        &row, arena,
        "{\"id\":\"ntf_x\",\"due_at\":\"1970-01-01T00:00:03.000000Z\",\"cancellable\":false}");
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_trigger_scheduled_names_its_subject_and_nothing_sealed),
        cmocka_unit_test(a_retry_has_its_attempt_and_an_unreadable_request_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
