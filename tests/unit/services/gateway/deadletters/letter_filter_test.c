// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "services/gateway/deadletters/letter_view.h"
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

static Letter letter_because(Arena *arena, const char *reason, const char *code)
{
    Str mail = packed(arena, &rendered_new(arena)->base);
    DeadLetter *body = letter_new(arena, "ntf.rendered.normal.demo", mail);
    body->reason = text_of(reason);
    body->reason_code = text_of(code);
    body->attempts = attempts_new(arena, 5, 2);
    body->n_attempts = 2;
    body->attempts[1]->vendor = text_of("smtp");
    body->attempts[1]->code = text_of("550");
    return read_letter(arena, body);
}

static void assert_reason(Arena *arena, const char *reason, const char *code, Str expected)
{
    Letter letter = letter_because(arena, reason, code);
    assert_true(str_eq(letter_reason(&letter), expected));
}

static void a_reason_is_its_code_else_its_first_word(void **state)
{
    Arena *arena = *state;
    assert_reason(arena, "rejected: 550 no", "rejected", STR("rejected"));
    assert_reason(arena, "unknown_outcome: this mail may", "", STR("unknown_outcome"));
    assert_reason(arena, "tenant 'acme' has no settings: x", "", STR("other"));
    assert_reason(arena, "", "", STR("other"));
    assert_reason(arena, ": of nothing", "", STR("other"));
    Letter unreadable = {.notification_id = ""};
    assert_true(str_eq(letter_reason(&unreadable), STR("unreadable")));
}

static void every_part_of_a_filter_has_to_fit(void **state)
{
    Letter letter = letter_because(*state, "rejected: 550 no", "rejected");
    letter.sequence = 7;
    letter.stored_at_us = NOW_US;
    const LetterFilter fits = {
        STR("dispatcher"), STR("rejected"), STR("smtp"), STR("550"), STR_EMPTY, NOW_US, 7};
    LetterFilter other = fits;
    assert_true(letter_matches(&fits, &letter));
    assert_true(letter_matches(&(LetterFilter){.since_us = 0}, &letter));
    other.stage = STR("renderer");
    assert_false(letter_matches(&other, &letter));
    other = fits;
    other.code = STR("551");
    assert_false(letter_matches(&other, &letter));
    other = fits;
    other.enhanced_code = STR("5.7.1");
    assert_false(letter_matches(&other, &letter));
    other = fits;
    other.since_us = NOW_US + 1;
    assert_false(letter_matches(&other, &letter));
    other = fits;
    other.until = 6;
    assert_false(letter_matches(&other, &letter));
}

static LetterClass class_of(Arena *arena, const char *reason, const char *subject, Error *why)
{
    Str mail = packed(arena, &rendered_new(arena)->base);
    DeadLetter *body = letter_new(arena, subject, mail);
    body->reason = text_of(reason);
    Letter letter = read_letter(arena, body);
    const ResendRules rules = {.now_us = NOW_US, .may_double = true};
    return letter_class(&letter, &rules, arena, why);
}

static void a_letter_is_safe_or_may_double_or_stays(void **state)
{
    Arena *arena = *state;
    Error why = {0};
    assert_int_equal(
        class_of(arena, "retries_exhausted: 451", "ntf.rendered.normal.demo", &why), LETTER_SAFE);
    assert_int_equal(
        class_of(arena, "unknown_outcome: x", "ntf.rendered.normal.demo", &why), LETTER_DOUBLES);
    assert_non_null(strstr(why.text, "second copy"));
    assert_int_equal(class_of(arena, "x", "ntf.status.demo.email.sent", &why), LETTER_STAYS);
    assert_string_equal(letter_class_name(LETTER_STAYS), "refused");
}

// ingest has no right to publish it.
static void what_a_vendor_reported_stays_for_a_tenant(void **state)
{
    Error why = {0};
    assert_int_equal(class_of(*state, "x", "ntf.inbound.sendgrid", &why), LETTER_STAYS);
    assert_non_null(strstr(why.text, "by an operator"));
    assert_int_equal(class_of(*state, "x", "ntf.settle.email.demo", &why), LETTER_STAYS);
}

static void a_view_has_the_last_attempt_and_no_event(void **state)
{
    Arena *arena = *state;
    Letter letter = letter_because(arena, "rejected: 550 no", "rejected");
    const ResendRules rules = {.now_us = NOW_US};
    json_t *json = letter_view_whole(&letter, &rules, arena);
    assert_string_equal(json_string_value(json_object_get(json, "code")), "550");
    assert_int_equal(json_array_size(json_object_get(json, "attempts")), 2);
    assert_string_equal(json_string_value(json_object_get(json, "detail")), "rejected: 550 no");
    assert_null(json_object_get(json, "event"));
    json_decref(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_reason_is_its_code_else_its_first_word, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_part_of_a_filter_has_to_fit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_letter_is_safe_or_may_double_or_stays, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            what_a_vendor_reported_stays_for_a_tenant, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_view_has_the_last_attempt_and_no_event, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
