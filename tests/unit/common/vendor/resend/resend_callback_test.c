// SPDX-License-Identifier: Apache-2.0
// Signatures: standard-webhooks/standard-webhooks, libraries/rust/src/lib.rs.
#include "tests/unit/common/vendor/callbacks.h"

#define SECRET "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
#define ID "msg_27UH4WbU6Z5A5EzD8u03UvzRbpk"
#define TIME "1649367553"
#define BODY "{\"email\":\"test@example.com\",\"username\":\"test_user\"}"
#define GOOD "v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw="

static CallbackVerdict judge(
    const char *prefix, const char *id, const char *timestamp, const char *signature,
    const char *body, const CallbackKey *keys, size_t count, int64_t now_s, size_t *ret_key)
{
    Arena *arena = arena_new(0);
    VendorPair headers[] = {
        {str_from(arena_printf(arena, "%s-id", prefix)), str_from(id)},
        {str_from(arena_printf(arena, "%s-timestamp", prefix)), str_from(timestamp)},
        {str_from(arena_printf(arena, "%s-signature", prefix)), str_from(signature)},
    };
    CallbackRequest request = {
        .headers = headers,
        .header_count = 3,
        .body = str_from(body),
        .received_at_us = now_s * 1000000,
        .max_age_s = 600,
    };
    CallbackVerdict verdict = ask(&resend_callback, &request, keys, count, ret_key);
    arena_free(arena);
    return verdict;
}

static void the_published_signature_verifies_under_both_names_of_its_headers(void **state)
{
    (void)state;
    CallbackKey keys[] = {
        {STR("old"), STR("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")}, {STR("new"), STR(SECRET)}};
    size_t which = 9;
    assert_int_equal(
        judge("svix", ID, TIME, GOOD, BODY, keys, 2, 1649367553, &which), CALLBACK_GOOD);
    assert_int_equal(which, 1);
    assert_int_equal(
        judge("webhook", ID, TIME, GOOD, BODY, keys, 2, 1649367553, &which), CALLBACK_GOOD);
    assert_int_equal(
        judge("svix", ID, TIME, "v1,AAAA v1a,xxxx " GOOD, BODY, keys, 2, 1649367553 + 600, &which),
        CALLBACK_GOOD);
}

static void whatever_differs_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *id, *timestamp, *signature, *body;
        int64_t now_s;
        CallbackVerdict verdict;
    } CASES[] = {
        {ID, TIME, GOOD, BODY " ", 1649367553, CALLBACK_BAD},
        {ID "x", TIME, GOOD, BODY, 1649367553, CALLBACK_BAD},
        {ID, "1649367554", GOOD, BODY, 1649367553, CALLBACK_BAD},
        {ID, TIME, "v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3KkA=", BODY, 1649367553,
         CALLBACK_BAD},
        {ID, TIME, "v2,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw=", BODY, 1649367553,
         CALLBACK_BAD},
        {ID, TIME, GOOD, BODY, 1649367553 + 601, CALLBACK_STALE},
        {ID, TIME, GOOD, BODY, 1649367553 - 601, CALLBACK_STALE},
        {"", TIME, GOOD, BODY, 1649367553, CALLBACK_UNSIGNED},
        {ID, "", GOOD, BODY, 1649367553, CALLBACK_UNSIGNED},
        {ID, "-1649367553", GOOD, BODY, 1649367553, CALLBACK_UNSIGNED},
        {ID, TIME, "", BODY, 1649367553, CALLBACK_UNSIGNED},
    };
    CallbackKey key = {STR("one"), STR(SECRET)};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        size_t which = 0;
        assert_int_equal(
            judge(
                "svix", CASES[i].id, CASES[i].timestamp, CASES[i].signature, CASES[i].body, &key, 1,
                CASES[i].now_s, &which),
            CASES[i].verdict);
    }
}

static void a_secret_has_its_form_and_the_empty_one_fits_nothing(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    static const char *const BAD[] = {
        "", "whsec_", "whsec_AAAA", "C2FVsBQIhrscChlQIMV+b5sSYspob7oD", "whsec_%%%%"};
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        Error err = {0};
        assert_false(resend_callback.key_check(str_from(BAD[i]), &err));
        assert_int_equal(err.kind, ERROR_PERMANENT);
        // Not even the signature under an empty key fits a key that cannot be read.
        CallbackKey bad = {STR("bad"), str_from(BAD[i])};
        size_t which = 0;
        assert_int_equal(
            judge("svix", ID, TIME, GOOD, BODY, &bad, 1, 1649367553, &which), CALLBACK_BAD);
    }
    assert_true(resend_callback.key_check(STR(SECRET), NULL));
    assert_true(resend_callback.key_check(resend_callback.key_none(arena), NULL));
    arena_free(arena);
}

#define EVENT(type, fields)                                                                        \
    "{\"type\":\"" type "\",\"created_at\":\"2026-11-22T23:41:12.126Z\",\"data\":{\"email_id\":"   \
    "\"56761188-7520-42d8-8898-ff6fc54ce618\",\"to\":[\"alice@example.com\"]," fields              \
    "\"tags\":{\"nid\":\"" NTF "\",\"attempt\":\"3\"}}}"

static void each_event_has_its_meaning(void **state)
{
    (void)state;
    static const Meaning CASES[] = {
        {EVENT("email.delivered", ""), STATUS_DELIVERED, OUTCOME_DELIVERED, "", SUPPRESSION_NONE},
        {EVENT("email.opened", ""), STATUS_OPENED, OUTCOME_OPENED, "", SUPPRESSION_NONE},
        {EVENT("email.clicked", ""), STATUS_CLICKED, OUTCOME_CLICKED, "", SUPPRESSION_NONE},
        {EVENT("email.complained", ""), STATUS_COMPLAINED, OUTCOME_COMPLAINT, "complaint",
         SUPPRESSION_COMPLAINT},
        {EVENT("email.bounced", "\"bounce\":{\"type\":\"Permanent\",\"subType\":\"General\"},"),
         STATUS_BOUNCED, OUTCOME_BOUNCE, "hard_bounce", SUPPRESSION_HARD_BOUNCE},
        {EVENT("email.bounced", "\"bounce\":{\"type\":\"Permanent\",\"subType\":\"Suppressed\"},"),
         STATUS_FAILED, OUTCOME_FAILED, "vendor_suppressed", SUPPRESSION_NONE},
        {EVENT("email.bounced", "\"bounce\":{\"type\":\"Transient\",\"subType\":\"General\"},"),
         STATUS_BOUNCED, OUTCOME_BOUNCE, "soft_bounce", SUPPRESSION_NONE},
        {EVENT("email.suppressed", ""), STATUS_FAILED, OUTCOME_FAILED, "vendor_suppressed",
         SUPPRESSION_NONE},
        {EVENT("email.failed", "\"failed\":{\"reason\":\"reached_daily_quota\"},"), STATUS_FAILED,
         OUTCOME_FAILED, "rejected", SUPPRESSION_NONE},
    };
    each_means(&resend_callback, CASES, sizeof CASES / sizeof *CASES);
    static const char *const IGNORED[] = {
        EVENT("email.sent", ""), EVENT("email.delivery_delayed", ""), EVENT("contact.created", ""),
        "{\"type\":\"email.opened\"}"};
    each_is_ignored(&resend_callback, IGNORED, sizeof IGNORED / sizeof *IGNORED);
    static const char *const REFUSED[] = {"", "{", "[]", "{}", "{\"type\":7}"};
    each_is_refused(&resend_callback, REFUSED, sizeof REFUSED / sizeof *REFUSED);
}

static void a_notification_is_found_by_tag_or_message_id(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    CallbackEvent event = read_one(&resend_callback, EVENT("email.delivered", ""), arena);
    assert_true(str_eq(event.notification_id, STR(NTF)));
    assert_int_equal(event.attempt, 3);
    assert_true(str_eq(event.message_id, STR("56761188-7520-42d8-8898-ff6fc54ce618")));
    assert_true(str_eq(event.email, STR("alice@example.com")));
    assert_int_equal(event.at_us % 1000000, 126000);
    static const char *const OTHERS[] = {
        "{\"type\":\"email.opened\",\"data\":{\"tags\":[{\"name\":\"nid\",\"value\":\"" NTF
        "\"}]}}",
        "{\"type\":\"email.opened\",\"data\":{\"headers\":[{\"name\":\"message-id\",\"value\":"
        "\"<" NTF "@acme.test>\"}]}}",
    };
    for (size_t i = 0; i < 2; i++) {
        event = read_one(&resend_callback, OTHERS[i], arena);
        assert_true(str_eq(event.notification_id, STR(NTF)));
    }
    event = read_one(
        &resend_callback,
        "{\"type\":\"email.bounced\",\"data\":{\"to\":[\"a@x.test\",\"b@x.test\"]}}", arena);
    assert_int_equal(event.email.len, 0); // it does not say which of them
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_published_signature_verifies_under_both_names_of_its_headers),
        cmocka_unit_test(whatever_differs_is_refused),
        cmocka_unit_test(a_secret_has_its_form_and_the_empty_one_fits_nothing),
        cmocka_unit_test(each_event_has_its_meaning),
        cmocka_unit_test(a_notification_is_found_by_tag_or_message_id),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
