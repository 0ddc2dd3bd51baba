// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "services/cli/operate/dlq_show.h"
#include "tests/unit/common/deadletter/dead_letters.h"

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

static void assert_json(json_t *json, const char *expected)
{
    char *text = json_dumps(json, JSON_COMPACT);
    assert_string_equal(text, expected);
    free(text);
    json_decref(json);
}

static const char *text_at(const json_t *json, const char *key)
{
    const char *text = json_string_value(json_object_get(json, key));
    return text != NULL ? text : "";
}

static void sealed_fields_are_never_bytes_and_times_are_readable(void **state)
{
    Arena *arena = *state;
    Rendered *event = rendered_new(arena);
    event->rendered_at_us = NOW_US;
    event->content_prefix_id = UINT64_MAX;
    event->attempts = attempts_new(arena, 1, 2);
    event->n_attempts = 2;
    assert_json(
        event_json(&event->base),
        "{\"meta\":{\"event_id\":\"rendered-event-id-0022\",\"tenant\":\"demo\",\"notification_"
        "id\":\"" NTF_ID "\",\"correlation_id\":\"corr-1\"},\"channel\":\"CHANNEL_EMAIL\","
        "\"priority\":\"PRIORITY_NORMAL\",\"address\":\"sealed\",\"content\":\"sealed\","
        "\"content_checksum\":\"0102ff\",\"content_prefix_id\":\"18446744073709551615\","
        "\"rendered_at\":\"2025-11-20T14:29:28.320000Z\",\"attempt\":6,\"rung\":5,"
        "\"attempts\":[{\"number\":1},{\"number\":2}]}");
}

static void only_the_set_case_of_a_oneof_is_shown(void **state)
{
    Arena *arena = *state;
    Stentor__V1__Deferred deferred;
    stentor__v1__deferred__init(&deferred);
    deferred.reason = text_of("retry");
    deferred.due_at_us = -1; // a time that is none stays a number
    assert_json(event_json(&deferred.base), "{\"reason\":\"retry\",\"due_at_us\":-1}");
    Rendered *event = rendered_new(arena);
    event->meta = NULL;
    event->channel = (Stentor__V1__Channel)99;
    deferred.work_case = STENTOR__V1__DEFERRED__WORK_RENDERED;
    deferred.rendered = event;
    json_t *json = event_json(&deferred.base);
    assert_null(json_object_get(json, "request"));
    const json_t *rendered = json_object_get(json, "rendered");
    assert_int_equal(json_integer_value(json_object_get(rendered, "channel")), 99);
    json_decref(json);
}

static void poison_is_hex_and_at_most_a_kibibyte(void **state)
{
    Arena *arena = *state;
    char bytes[LETTER_BYTES_SHOWN + 1];
    memset(bytes, 0xab, sizeof bytes);
    for (size_t len = LETTER_BYTES_SHOWN; len <= sizeof bytes; len++) {
        Letter letter =
            read_letter(arena, letter_new(arena, "ntf.request.normal.demo", str_of(bytes, len)));
        json_t *json = letter_whole(&letter, NOW_US, arena);
        assert_null(json_object_get(json, "event"));
        const char *hex = text_at(json, "payload_hex");
        size_t dots = len > LETTER_BYTES_SHOWN ? 3 : 0;
        assert_int_equal(strlen(hex), (size_t)(2 * LETTER_BYTES_SHOWN) + dots);
        assert_int_equal(strncmp(hex, "abab", 4), 0);
        assert_int_equal(json_integer_value(json_object_get(json, "payload_bytes")), (int)len);
        json_decref(json);
    }
}

// Protobuf takes these bytes for an event with unknown fields.
static void bytes_without_a_head_are_no_event(void **state)
{
    Arena *arena = *state;
    Letter letter = read_letter(arena, letter_new(arena, "ntf.request.normal.demo", STR("xxxx")));
    assert_null(letter.event);
    json_t *json = letter_whole(&letter, NOW_US, arena);
    assert_string_equal(text_at(json, "payload_hex"), "78787878");
    json_decref(json);
}

static void a_row_says_what_a_person_looks_for(void **state)
{
    Arena *arena = *state;
    DeadLetter *body =
        letter_new(arena, "ntf.rendered.normal.demo", packed(arena, &rendered_new(arena)->base));
    body->attempts = attempts_new(arena, 3, 4);
    body->n_attempts = 4;
    body->reason_code = text_of("retries_exhausted");
    Letter letter = read_letter(arena, body);
    assert_json(
        letter_row(&letter, NOW_US, arena),
        "{\"sequence\":4,\"stored_at\":\"2025-11-20T14:27:58.320000Z\",\"age_s\":90,\"stage\":"
        "\"dispatcher\",\"tenant\":\"demo\",\"notification_id\":\"" NTF_ID "\",\"reason\":"
        "\"retries_exhausted: 451 try later\",\"reason_code\":\"retries_exhausted\",\"attempts\":6,\"readable\":true}");
    body->meta->notification_id = text_of("ntf_01KAGTQ5M0000000000000000B");
    letter = read_letter(arena, body);
    assert_string_equal(letter.notification_id, "ntf_01KAGTQ5M0000000000000000B");
}

static void text_of_others_cannot_steer_the_terminal(void **state)
{
    Arena *arena = *state;
    assert_string_equal(printable("a\x1b[31m\r\n\x7f\tb", arena), "a?[31m????b");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(sealed_fields_are_never_bytes_and_times_are_readable),
        TEST(only_the_set_case_of_a_oneof_is_shown),
        TEST(poison_is_hex_and_at_most_a_kibibyte),
        TEST(bytes_without_a_head_are_no_event),
        TEST(a_row_says_what_a_person_looks_for),
        TEST(text_of_others_cannot_steer_the_terminal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
