// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "common/vendor/callback_list.h"

#define NTF "ntf_01ARZ3NDEKTSV4RRFFQ69G5FAV"
#define OURS                                                                                       \
    "\"smtp-id\":\"<" NTF "@mail.example.com>\",\"sg_event_id\":\"e1\",\"timestamp\":1600112492"

static CallbackBatch parse(const char *body, Arena *arena)
{
    CallbackBatch batch = {0};
    Error err = {0};
    if (!sendgrid_callback.events(str_from(body), arena, &batch, &err)) {
        fail_msg("%s: %s", body, err.text);
    }
    return batch;
}

static void each_kind_of_event_has_its_status(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        Status status;
        Outcome outcome;
        const char *reason_code;
    } CASES[] = {
        {"[{\"event\":\"delivered\"," OURS "}]", STATUS_DELIVERED, OUTCOME_DELIVERED, ""},
        {"[{\"event\":\"open\"," OURS "}]", STATUS_OPENED, OUTCOME_OPENED, ""},
        {"[{\"event\":\"click\"," OURS "}]", STATUS_CLICKED, OUTCOME_CLICKED, ""},
        {"[{\"event\":\"bounce\",\"type\":\"bounce\"," OURS "}]", STATUS_BOUNCED, OUTCOME_BOUNCE,
         "hard_bounce"},
        {"[{\"event\":\"bounce\"," OURS "}]", STATUS_BOUNCED, OUTCOME_BOUNCE, "hard_bounce"},
        {"[{\"event\":\"bounce\",\"type\":\"blocked\"," OURS "}]", STATUS_FAILED, OUTCOME_FAILED,
         "blocked"},
        {"[{\"event\":\"dropped\"," OURS "}]", STATUS_FAILED, OUTCOME_FAILED, "dropped"},
        {"[{\"event\":\"spamreport\"," OURS "}]", STATUS_COMPLAINED, OUTCOME_COMPLAINT,
         "complaint"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        Arena *arena = arena_new(0);
        CallbackBatch batch = parse(CASES[i].body, arena);
        assert_int_equal(batch.count, 1);
        const CallbackEvent *event = &batch.events[0];
        assert_int_equal(event->status, CASES[i].status);
        assert_int_equal(event->outcome, CASES[i].outcome);
        assert_string_equal(event->reason_code, CASES[i].reason_code);
        assert_true(str_eq(event->notification_id, STR(NTF)));
        assert_true(str_eq(event->id, STR("e1")));
        assert_int_equal(event->at_us, INT64_C(1600112492000000));
        arena_free(arena);
    }
}

static void what_is_for_good_suppresses(void **state)
{
    (void)state;
    static const struct {
        const char *kind;
        SuppressionReason suppress;
    } CASES[] = {
        {"\"bounce\"", SUPPRESSION_HARD_BOUNCE},
        {"\"bounce\",\"type\":\"blocked\"", SUPPRESSION_NONE},
        {"\"spamreport\"", SUPPRESSION_COMPLAINT},
        {"\"unsubscribe\"", SUPPRESSION_OPT_OUT},
        {"\"dropped\"", SUPPRESSION_NONE},
        {"\"delivered\"", SUPPRESSION_NONE},
    };
    Arena *arena = arena_new(0);
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        CallbackBatch batch = parse(
            arena_printf(arena, "[{\"event\":%s,\"email\":\"Alice@example.com\"}]", CASES[i].kind),
            arena);
        assert_int_equal(batch.count, 1);
        assert_int_equal(batch.events[0].suppress, CASES[i].suppress);
        assert_true(str_eq(batch.events[0].email, STR("Alice@example.com")));
    }
    arena_free(arena);
}

static void what_is_no_address_is_left_out(void **state)
{
    (void)state;
    static const char *const BAD[] = {"", "alice", "@example.com", "alice@", "a b@c", "a\\n@b"};
    Arena *arena = arena_new(0);
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        CallbackBatch batch =
            parse(arena_printf(arena, "[{\"event\":\"bounce\",\"email\":\"%s\"}]", BAD[i]), arena);
        assert_int_equal(batch.events[0].email.len, 0);
    }
    arena_free(arena);
}

static void kinds_that_change_no_status_are_counted(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    CallbackBatch batch = parse(
        "[{\"event\":\"processed\"},{\"event\":\"deferred\"},{\"event\":\"group_resubscribe\"},"
        "{\"event\":\"tomorrow's invention\"},{\"event\":7},{},7,null,[]]",
        arena);
    assert_int_equal(batch.count, 0);
    assert_int_equal(batch.ignored, 4);
    assert_int_equal(batch.unreadable, 5);
    arena_free(arena);
}

static void the_message_id_is_as_the_call_was_answered(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    CallbackBatch batch = parse(
        "[{\"event\":\"open\",\"sg_message_id\":\"LRzXl_NHStOGhQ4kofSm_A.filterdrecv-p3mdw1-18.0\"}"
        ","
        "{\"event\":\"open\",\"sg_message_id\":\"plain\"}]",
        arena);
    assert_true(str_eq(batch.events[0].message_id, STR("LRzXl_NHStOGhQ4kofSm_A")));
    assert_true(str_eq(batch.events[1].message_id, STR("plain")));
    arena_free(arena);
}

static void a_notification_is_found_by_smtp_id_or_custom_argument(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    CallbackBatch batch = parse(
        "[{\"event\":\"open\",\"notification_id\":\"" NTF "\",\"smtp-id\":\"<x@y.z>\"},"
        "{\"event\":\"open\",\"smtp-id\":\"" NTF "@y.z\"},"
        "{\"event\":\"open\",\"smtp-id\":\"<LRzXl_NHStOGhQ4kofSm_A@ismtpd0039p1iad1.sendgrid.net>"
        "\"},"
        "{\"event\":\"open\",\"smtp-id\":\"<ntf_short@y.z>\"},"
        "{\"event\":\"open\",\"smtp-id\":\"<" NTF "\"},"
        "{\"event\":\"open\",\"notification_id\":7},{\"event\":\"open\"}]",
        arena);
    assert_int_equal(batch.count, 7);
    for (size_t i = 0; i < batch.count; i++) {
        assert_int_equal(batch.events[i].notification_id.len, i < 2 ? strlen(NTF) : 0);
    }
    arena_free(arena);
}

static void the_vendors_words_are_masked_and_cut(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    CallbackBatch batch = parse(
        "[{\"event\":\"bounce\",\"status\":\"5.1.1\",\"reason\":\"550 5.1.1 unknown "
        "alice.smith@example.com\"," OURS "}]",
        arena);
    Str text = batch.events[0].text;
    assert_null(strstr(arena_cstr(arena, text), "alice.smith"));
    assert_non_null(strstr(arena_cstr(arena, text), "@example.com"));
    assert_true(str_eq(batch.events[0].enhanced_code, STR("5.1.1")));

    static char body[4000] = "[{\"event\":\"dropped\",\"reason\":\"";
    for (size_t i = 0; i < 1000; i++) {
        strncat(body, "\xc3\xbc", 3);
    }
    strncat(body, "\"}]", 4);
    batch = parse(body, arena);
    assert_in_range(batch.events[0].text.len, CALLBACK_TEXT_MAX - 1, CALLBACK_TEXT_MAX);
    assert_true(str_is_utf8(batch.events[0].text));
    arena_free(arena);
}

static void odd_values_are_left_out(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    CallbackBatch batch = parse(
        "[{\"event\":\"open\",\"sg_event_id\":\"a\\nb\",\"timestamp\":-5,\"reason\":{}},"
        "{\"event\":\"open\",\"timestamp\":99999999999999,\"sg_message_id\":[]},"
        "{\"event\":\"open\",\"timestamp\":\"1600112492\"}]",
        arena);
    assert_int_equal(batch.count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(batch.events[i].id.len, 0);
        assert_int_equal(batch.events[i].message_id.len, 0);
        assert_int_equal(batch.events[i].at_us, 0);
        assert_int_equal(batch.events[i].text.len, 0);
    }
    arena_free(arena);
}

static void a_body_that_is_no_array_is_permanent(void **state)
{
    (void)state;
    static const char *const BAD[] = {
        "", "{}", "7", "[", "[{]", "this is not JSON", "[{\"event\":\"\xff\"}]"};
    Arena *arena = arena_new(0);
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        CallbackBatch batch;
        Error err = {0};
        assert_false(sendgrid_callback.events(str_from(BAD[i]), arena, &batch, &err));
        assert_int_equal(err.kind, ERROR_PERMANENT);
    }
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_of_event_has_its_status),
        cmocka_unit_test(what_is_for_good_suppresses),
        cmocka_unit_test(what_is_no_address_is_left_out),
        cmocka_unit_test(kinds_that_change_no_status_are_counted),
        cmocka_unit_test(the_message_id_is_as_the_call_was_answered),
        cmocka_unit_test(a_notification_is_found_by_smtp_id_or_custom_argument),
        cmocka_unit_test(the_vendors_words_are_masked_and_cut),
        cmocka_unit_test(odd_values_are_left_out),
        cmocka_unit_test(a_body_that_is_no_array_is_permanent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
