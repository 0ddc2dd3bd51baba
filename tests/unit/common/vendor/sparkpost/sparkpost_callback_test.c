// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/common/vendor/callbacks.h"

#define EVENT(class, type, fields)                                                                 \
    "[{\"msys\":{\"" class "\":{\"type\":\"" type "\",\"event_id\":\"92356927693813856\","         \
                           "\"transmission_id\":\"65832150921904138\",\"message_id\":"             \
                           "\"000443ee14578172be22\","                                             \
                           "\"raw_rcpt_to\":\"Alice@example.com\",\"rcpt_to\":\"alice@example."    \
                           "com\"," fields "\"rcpt_meta\":{\"nid\":\"" NTF                         \
                           "\",\"attempt\":\"4\"},\"timestamp\":\"1454442600\"}}}]"
#define BOUNCE(number) EVENT("message_event", "bounce", "\"bounce_class\":\"" number "\",")

static void each_event_has_its_meaning(void **state)
{
    (void)state;
    static const Meaning CASES[] = {
        {EVENT("message_event", "delivery", ""), STATUS_DELIVERED, OUTCOME_DELIVERED, "",
         SUPPRESSION_NONE},
        {EVENT("track_event", "open", ""), STATUS_OPENED, OUTCOME_OPENED, "", SUPPRESSION_NONE},
        {EVENT("track_event", "click", ""), STATUS_CLICKED, OUTCOME_CLICKED, "", SUPPRESSION_NONE},
        {EVENT("message_event", "spam_complaint", ""), STATUS_COMPLAINED, OUTCOME_COMPLAINT,
         "complaint", SUPPRESSION_COMPLAINT},
        {EVENT("unsubscribe_event", "list_unsubscribe", ""), STATUS_NONE, OUTCOME_NONE, "",
         SUPPRESSION_OPT_OUT},
        {EVENT("gen_event", "generation_failure", ""), STATUS_FAILED, OUTCOME_FAILED, "rejected",
         SUPPRESSION_NONE},
    };
    each_means(&sparkpost_callback, CASES, sizeof CASES / sizeof *CASES);
    static const char *const IGNORED[] = {
        "[{\"msys\":{}}]", EVENT("message_event", "delay", ""),
        EVENT("message_event", "injection", "")};
    each_is_ignored(&sparkpost_callback, IGNORED, sizeof IGNORED / sizeof *IGNORED);
    static const char *const REFUSED[] = {"", "[", "{}", "7"};
    each_is_refused(&sparkpost_callback, REFUSED, sizeof REFUSED / sizeof *REFUSED);
    Arena *arena = arena_new(0);
    CallbackBatch odd = read_all(
        &sparkpost_callback, "[7,{},{\"msys\":7},{\"msys\":{\"message_event\":{}}},null]", arena);
    assert_int_equal(odd.unreadable, 5);
    arena_free(arena);
}

static void only_a_bad_address_suppresses(void **state)
{
    (void)state;
    static const Meaning CASES[] = {
        {BOUNCE("10"), STATUS_BOUNCED, OUTCOME_BOUNCE, "hard_bounce", SUPPRESSION_HARD_BOUNCE},
        {BOUNCE("30"), STATUS_BOUNCED, OUTCOME_BOUNCE, "hard_bounce", SUPPRESSION_HARD_BOUNCE},
        {EVENT("message_event", "out_of_band", "\"bounce_class\":10,"), STATUS_BOUNCED,
         OUTCOME_BOUNCE, "hard_bounce", SUPPRESSION_HARD_BOUNCE},
        {BOUNCE("20"), STATUS_BOUNCED, OUTCOME_BOUNCE, "soft_bounce", SUPPRESSION_NONE},
        {BOUNCE("22"), STATUS_BOUNCED, OUTCOME_BOUNCE, "soft_bounce", SUPPRESSION_NONE},
        {BOUNCE("40"), STATUS_BOUNCED, OUTCOME_BOUNCE, "soft_bounce", SUPPRESSION_NONE},
        {BOUNCE("70"), STATUS_BOUNCED, OUTCOME_BOUNCE, "soft_bounce", SUPPRESSION_NONE},
        {BOUNCE("25"), STATUS_FAILED, OUTCOME_FAILED, "vendor_suppressed", SUPPRESSION_NONE},
        {BOUNCE("50"), STATUS_FAILED, OUTCOME_FAILED, "blocked", SUPPRESSION_NONE},
        {BOUNCE("54"), STATUS_FAILED, OUTCOME_FAILED, "blocked", SUPPRESSION_NONE},
        {BOUNCE("90"), STATUS_NONE, OUTCOME_NONE, "", SUPPRESSION_OPT_OUT},
    };
    each_means(&sparkpost_callback, CASES, sizeof CASES / sizeof *CASES);
}

static void an_event_says_whom_and_when(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    CallbackEvent event = read_one(
        &sparkpost_callback,
        EVENT(
            "message_event", "bounce",
            "\"bounce_class\":\"10\",\"raw_reason\":\"550 5.1.1 bob.jones@x.test unknown\","),
        arena);
    assert_true(str_eq(event.id, STR("92356927693813856")));
    assert_true(str_eq(event.notification_id, STR(NTF)));
    assert_int_equal(event.attempt, 4);
    assert_true(str_eq(event.message_id, STR("65832150921904138"))); // as the call was answered
    assert_true(str_eq(event.email, STR("Alice@example.com")));
    assert_true(str_eq(event.enhanced_code, STR("5.1.1")));
    assert_null(strstr(arena_cstr(arena, event.text), "bob.jones"));
    assert_int_equal(event.at_us, INT64_C(1454442600000000));
    assert_true(read_one(
                    &sparkpost_callback,
                    EVENT("track_event", "initial_open", "\"is_prefetched\":true,"), arena)
                    .machine);
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_event_has_its_meaning),
        cmocka_unit_test(only_a_bad_address_suppresses),
        cmocka_unit_test(an_event_says_whom_and_when),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
