// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/common/vendor/callbacks.h"

static CallbackVerdict judge(
    const char *authorization, const CallbackKey *keys, size_t count, size_t *ret_key)
{
    VendorPair header = {STR("authorization"), str_from(authorization)};
    CallbackRequest request = {.headers = &header, .header_count = 1, .body = STR("{}")};
    return ask(&postmark_callback, &request, keys, count, ret_key);
}

// "postmark:a long password" and "a-token-of-sparkpost", as `base64` writes them.
static void user_and_password_are_compared(void **state)
{
    (void)state;
    CallbackKey keys[] = {
        {STR("token"), STR("a-token-of-sparkpost")},
        {STR("pair"), STR("postmark:a long password")}};
    static const struct {
        const char *header;
        CallbackVerdict verdict;
        size_t key;
    } CASES[] = {
        {"Basic cG9zdG1hcms6YSBsb25nIHBhc3N3b3Jk", CALLBACK_GOOD, 1},
        {"basic  cG9zdG1hcms6YSBsb25nIHBhc3N3b3Jk", CALLBACK_GOOD, 1},
        {"Bearer a-token-of-sparkpost", CALLBACK_GOOD, 0},
        {"Bearer postmark:a long password", CALLBACK_BAD, 0}, // each in its own form
        {"Basic YS10b2tlbi1vZi1zcGFya3Bvc3Q=", CALLBACK_BAD, 0},
        {"Basic cG9zdG1hcms6YSBsb25nIHBhc3N3b3Jj", CALLBACK_BAD, 0},
        {"Basic %%%", CALLBACK_UNSIGNED, 0},
        {"Basic ", CALLBACK_UNSIGNED, 0},
        {"Digest x", CALLBACK_UNSIGNED, 0},
        {"", CALLBACK_UNSIGNED, 0},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        size_t which = 9;
        if (judge(CASES[i].header, keys, 2, &which) != CASES[i].verdict) {
            fail_msg("%s", CASES[i].header);
        }
        assert_int_equal(which, CASES[i].verdict == CALLBACK_GOOD ? CASES[i].key : 9);
    }
}

static void a_short_secret_is_no_key_and_the_empty_one_fits_nothing(void **state)
{
    (void)state;
    Error err = {0};
    Arena *arena = arena_new(0);
    assert_false(postmark_callback.key_check(STR("user:short"), &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
    assert_true(postmark_callback.key_check(STR("postmark:a long password"), NULL));
    assert_true(postmark_callback.key_check(postmark_callback.key_none(arena), NULL));
    arena_free(arena);
}

#define RECORD(type, fields)                                                                       \
    "{\"RecordType\":\"" type "\",\"MessageID\":\"883953f4-6105-42a2-a16a-77a8eac79483\","         \
    "\"Recipient\":\"alice@example.com\"," fields                                                  \
    "\"DeliveredAt\":\"2026-11-05T16:33:54.9070259Z\",\"Metadata\":{\"nid\":\"" NTF                \
    "\",\"attempt\":\"1\"}}"

static void each_record_has_its_meaning(void **state)
{
    (void)state;
    static const Meaning CASES[] = {
        {RECORD("Delivery", ""), STATUS_DELIVERED, OUTCOME_DELIVERED, "", SUPPRESSION_NONE},
        {RECORD("Open", ""), STATUS_OPENED, OUTCOME_OPENED, "", SUPPRESSION_NONE},
        {RECORD("Click", ""), STATUS_CLICKED, OUTCOME_CLICKED, "", SUPPRESSION_NONE},
        {RECORD("SpamComplaint", "\"Type\":\"SpamComplaint\","), STATUS_COMPLAINED,
         OUTCOME_COMPLAINT, "complaint", SUPPRESSION_COMPLAINT},
        {RECORD("Bounce", "\"Type\":\"HardBounce\","), STATUS_BOUNCED, OUTCOME_BOUNCE,
         "hard_bounce", SUPPRESSION_HARD_BOUNCE},
        {RECORD("Bounce", "\"Type\":\"BadEmailAddress\","), STATUS_BOUNCED, OUTCOME_BOUNCE,
         "hard_bounce", SUPPRESSION_HARD_BOUNCE},
        {RECORD("Bounce", "\"Type\":\"SoftBounce\","), STATUS_BOUNCED, OUTCOME_BOUNCE,
         "soft_bounce", SUPPRESSION_NONE},
        {RECORD("Bounce", "\"Type\":\"SpamNotification\","), STATUS_FAILED, OUTCOME_FAILED,
         "blocked", SUPPRESSION_NONE},
        {RECORD("Bounce", "\"Type\":\"ManuallyDeactivated\","), STATUS_FAILED, OUTCOME_FAILED,
         "vendor_suppressed", SUPPRESSION_NONE},
        {RECORD(
             "SubscriptionChange",
             "\"SuppressSending\":true,\"SuppressionReason\":\"ManualSuppression\",\"Origin\":"
             "\"Recipient\","),
         STATUS_NONE, OUTCOME_NONE, "", SUPPRESSION_OPT_OUT},
    };
    each_means(&postmark_callback, CASES, sizeof CASES / sizeof *CASES);
    static const char *const IGNORED[] = {
        RECORD("Bounce", "\"Type\":\"Transient\","),
        RECORD("Bounce", "\"Type\":\"AutoResponder\","),
        RECORD("SubscriptionChange", "\"SuppressSending\":false,\"Origin\":\"Recipient\","),
        RECORD(
            "SubscriptionChange",
            "\"SuppressSending\":true,\"SuppressionReason\":\"HardBounce\",\"Origin\":"
            "\"Recipient\",")};
    each_is_ignored(&postmark_callback, IGNORED, sizeof IGNORED / sizeof *IGNORED);
    static const char *const REFUSED[] = {"", "{", "[]", "{}", "{\"RecordType\":null}"};
    each_is_refused(&postmark_callback, REFUSED, sizeof REFUSED / sizeof *REFUSED);
}

static void a_record_says_whom_and_when(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    CallbackEvent event = read_one(
        &postmark_callback,
        RECORD(
            "Bounce", "\"ID\":4323372036854775807,\"Type\":\"HardBounce\",\"Details\":\"smtp;550 "
                      "5.1.1 bob.jones@example.com is unknown\","),
        arena);
    assert_true(str_eq(event.id, STR("4323372036854775807")));
    assert_true(str_eq(event.notification_id, STR(NTF)));
    assert_int_equal(event.attempt, 1);
    assert_true(str_eq(event.message_id, STR("883953f4-6105-42a2-a16a-77a8eac79483")));
    assert_true(str_eq(event.email, STR("alice@example.com")));
    assert_true(str_eq(event.enhanced_code, STR("5.1.1")));
    assert_null(strstr(arena_cstr(arena, event.text), "bob.jones"));
    assert_int_equal(event.at_us % 1000000, 907025);
    event = read_one(&postmark_callback, RECORD("Open", "\"UserAgent\":\"Mozilla/5.0\","), arena);
    assert_true(event.machine);
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(user_and_password_are_compared),
        cmocka_unit_test(a_short_secret_is_no_key_and_the_empty_one_fits_nothing),
        cmocka_unit_test(each_record_has_its_meaning),
        cmocka_unit_test(a_record_says_whom_and_when),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
