// SPDX-License-Identifier: Apache-2.0
// Vectors: aws/aws-sdk-ruby, gems/aws-sdk-sns/spec/message_verifier_spec.rb.
#include "tests/unit/common/vendor/callbacks.h"

#include "common/base/clock.h"
#include "common/vendor/ses/sns.h"

#define TOPIC                                                                                      \
    "arn:aws:sns:us-east-2:295079676684:publish-and-verify-892f85fe-4836-424d-8188-ab85bef0f362"
#define HOST "https://sns.us-east-2.amazonaws.com/"

static Str read_vector(const char *name, Arena *arena)
{
    char path[512];
    (void)snprintf(
        path, sizeof path, "%s/tests/unit/common/vendor/vectors/%s", STENTOR_SOURCE_DIR, name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *place = arena_alloc(arena, 8192);
    size_t len = fread(place, 1, 8192, file);
    (void)fclose(file);
    assert_in_range(len, 100, 8191);
    return str_of(place, len);
}

// The two messages were sent within half a minute of each other.
static int64_t sent_us(void)
{
    int64_t at_us = 0;
    assert_true(clock_parse(STR("2022-07-28T21:24:08Z"), &at_us));
    return at_us;
}

static CallbackVerdict judge(Str body, Str certificate, int64_t after_s)
{
    CallbackRequest request = {
        .body = body, .received_at_us = sent_us() + after_s * 1000000, .max_age_s = 600};
    CallbackKey key = {STR("aws"), certificate};
    size_t which = 9;
    CallbackVerdict verdict = ask(&ses_callback, &request, &key, 1, &which);
    assert_int_equal(which, verdict == CALLBACK_GOOD ? 0 : 9);
    return verdict;
}

static Str replace(Arena *arena, Str body, const char *what, const char *by)
{
    const char *text = arena_cstr(arena, body);
    const char *at = strstr(text, what);
    assert_non_null(at);
    return str_from(arena_printf(arena, "%.*s%s%s", (int)(at - text), text, by, at + strlen(what)));
}

static void both_published_messages_verify(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    Str certificate = read_vector("sns_signing_cert.pem", arena);
    assert_true(ses_callback.key_check(certificate, NULL));
    assert_int_equal(judge(read_vector("sns_v1.json", arena), certificate, 0), CALLBACK_GOOD);
    assert_int_equal(judge(read_vector("sns_v2.json", arena), certificate, 0), CALLBACK_GOOD);
    // It repeats for an hour with the same time.
    assert_int_equal(judge(read_vector("sns_v2.json", arena), certificate, 3900), CALLBACK_GOOD);
    assert_int_equal(judge(read_vector("sns_v2.json", arena), certificate, 3902), CALLBACK_STALE);
    assert_int_equal(judge(read_vector("sns_v2.json", arena), certificate, -700), CALLBACK_STALE);
    arena_free(arena);
}

static void whatever_differs_is_refused(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    Str certificate = read_vector("sns_signing_cert.pem", arena);
    Str body = read_vector("sns_v2.json", arena);
    static const struct {
        const char *what, *by;
        CallbackVerdict verdict;
    } CASES[] = {
        {"Hello world", "Hello World", CALLBACK_BAD},
        {"\"SignatureVersion\" : \"2\"", "\"SignatureVersion\" : \"1\"", CALLBACK_BAD},
        {"\"SignatureVersion\" : \"2\"", "\"SignatureVersion\" : \"3\"", CALLBACK_UNSIGNED},
        {"\"Type\" : \"Notification\"", "\"Type\" : \"SubscriptionConfirmation\"", CALLBACK_BAD},
        {"\"Message\"", "\"Subject\" : \"x\", \"Message\"", CALLBACK_BAD},
        {"\"Signature\" : \"", "\"Signature\" : \"bad\", \"x\" : \"", CALLBACK_UNSIGNED},
        {"295079676684:publish", "295079676685:publish", CALLBACK_BAD},
        {"\"TopicArn\"", "\"Topic\"", CALLBACK_UNSIGNED},
        {"\"Timestamp\" : \"2022-07-28T21:24:08.324Z\"", "\"Timestamp\" : \"now\"",
         CALLBACK_UNSIGNED},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        CallbackVerdict verdict =
            judge(replace(arena, body, CASES[i].what, CASES[i].by), certificate, 0);
        if (verdict != CASES[i].verdict) {
            fail_msg("%s: %d", CASES[i].by, verdict);
        }
    }
    arena_free(arena);
}

static void a_certificate_is_one_in_force_and_nothing_else(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    Str certificate = read_vector("sns_signing_cert.pem", arena);
    Str body = read_vector("sns_v2.json", arena);
    CallbackRequest later = {.body = body, .received_at_us = sent_us()};
    later.received_at_us += INT64_C(365) * 86400 * 1000000; // it ended on 2022-08-17
    CallbackKey key = {STR("aws"), certificate};
    size_t which = 0;
    assert_int_equal(ask(&ses_callback, &later, &key, 1, &which), CALLBACK_BAD);
    Str bad[] = {
        str_from(
            arena_printf(arena, "<xml><value>" STR_FMT "</value></xml>", STR_ARG(certificate))),
        str_from(arena_printf(arena, STR_FMT STR_FMT, STR_ARG(certificate), STR_ARG(certificate))),
        STR("-----BEGIN CERTIFICATE-----"),
        STR_EMPTY,
        ses_callback.key_none(arena),
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(ses_callback.key_check(bad[i], NULL));
        assert_int_equal(judge(body, bad[i], 0), CALLBACK_BAD);
    }
    arena_free(arena);
}

static void only_the_topics_own_host_is_asked(void **state)
{
    (void)state;
    static const char *const BAD[] = {
        "http://sns.us-east-2.amazonaws.com/a.pem",
        "https://internetbadguys.com/cert.pem",
        "https://sns.us-east-2.amazonaws.com.evil.test/a.pem",
        "https://sns.us-east-2.amazonaws.com@evil.test/a.pem",
        "https://sns.us-east-2.amazonaws.com:8443/a.pem",
        "https://user@sns.us-east-2.amazonaws.com/a.pem",
        "https://sns.us-east-1.amazonaws.com/a.pem",
        "https://sns.us-east-2.amazonaws.com/a.key",
        "https://sns.us-east-2.amazonaws.com/a.txt?x=.pem",
        "https://sns.us-east-2.amazonaws.com/a b.pem",
        "https://sns.us-east-2.amazonaws.com/#.pem",
        "",
    };
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        if (sns_is_certificate_url(str_from(BAD[i]), STR(TOPIC))) {
            fail_msg("%s", BAD[i]);
        }
    }
    assert_true(sns_is_certificate_url(STR(HOST "SimpleNotificationService-1.pem"), STR(TOPIC)));
    assert_true(sns_is_pinned(STR(HOST "?Action=ConfirmSubscription&Token=1"), STR(TOPIC)));
    assert_false(sns_is_pinned(STR(HOST), STR("arn:aws:sqs:us-east-2:1:x")));
    assert_true(sns_is_topic(STR(TOPIC)));
    assert_false(sns_is_topic(STR("arn:aws:sns:us-east-2:295079676684")));
    assert_false(sns_is_topic(STR("arn:aws:sns:evil.test/:295079676684:x")));
}

// ---- SES' events ----

static const char *wrap(Arena *arena, const char *message)
{
    char *out = arena_alloc(arena, 2 * strlen(message) + 1);
    size_t at = 0;
    for (const char *c = message; *c != '\0'; c++) {
        if (*c == '"') {
            out[at++] = '\\';
        }
        out[at++] = *c;
    }
    out[at] = '\0';
    return arena_printf(
        arena,
        "{\"Type\":\"Notification\",\"MessageId\":\"m\",\"TopicArn\":\"" TOPIC
        "\",\"Message\":\"%s\"}",
        out);
}

#define MAIL                                                                                       \
    "\"mail\":{\"messageId\":\"010f-1\",\"timestamp\":\"2026-11-20T10:00:00.000Z\",\"tags\":"      \
    "{\"nid\":[\"" NTF "\"],\"attempt\":[\"2\"]}}"

static void each_event_has_its_meaning(void **state)
{
    (void)state;
    static const Meaning CASES[] = {
        {"{\"eventType\":\"Delivery\",\"delivery\":{}," MAIL "}", STATUS_DELIVERED,
         OUTCOME_DELIVERED, "", SUPPRESSION_NONE},
        {"{\"notificationType\":\"Delivery\",\"delivery\":{}," MAIL "}", STATUS_DELIVERED,
         OUTCOME_DELIVERED, "", SUPPRESSION_NONE},
        {"{\"eventType\":\"Open\",\"open\":{}," MAIL "}", STATUS_OPENED, OUTCOME_OPENED, "",
         SUPPRESSION_NONE},
        {"{\"eventType\":\"Click\",\"click\":{}," MAIL "}", STATUS_CLICKED, OUTCOME_CLICKED, "",
         SUPPRESSION_NONE},
        {"{\"eventType\":\"Bounce\",\"bounce\":{\"bounceType\":\"Permanent\",\"bounceSubType\":"
         "\"General\"}," MAIL "}",
         STATUS_BOUNCED, OUTCOME_BOUNCE, "hard_bounce", SUPPRESSION_HARD_BOUNCE},
        {"{\"eventType\":\"Bounce\",\"bounce\":{\"bounceType\":\"Permanent\",\"bounceSubType\":"
         "\"OnAccountSuppressionList\"}," MAIL "}",
         STATUS_FAILED, OUTCOME_FAILED, "vendor_suppressed", SUPPRESSION_NONE},
        {"{\"eventType\":\"Bounce\",\"bounce\":{\"bounceType\":\"Transient\",\"bounceSubType\":"
         "\"MailboxFull\"}," MAIL "}",
         STATUS_BOUNCED, OUTCOME_BOUNCE, "soft_bounce", SUPPRESSION_NONE},
        {"{\"eventType\":\"Bounce\",\"bounce\":{\"bounceType\":\"Transient\",\"bounceSubType\":"
         "\"ContentRejected\"}," MAIL "}",
         STATUS_FAILED, OUTCOME_FAILED, "blocked", SUPPRESSION_NONE},
        {"{\"eventType\":\"Bounce\",\"bounce\":{\"bounceType\":\"Undetermined\"}," MAIL "}",
         STATUS_BOUNCED, OUTCOME_BOUNCE, "soft_bounce", SUPPRESSION_NONE},
        {"{\"eventType\":\"Complaint\",\"complaint\":{\"complaintFeedbackType\":\"abuse\"}," MAIL
         "}",
         STATUS_COMPLAINED, OUTCOME_COMPLAINT, "complaint", SUPPRESSION_COMPLAINT},
        {"{\"eventType\":\"Complaint\",\"complaint\":{\"complaintSubType\":"
         "\"OnAccountSuppressionList\"}," MAIL "}",
         STATUS_FAILED, OUTCOME_FAILED, "vendor_suppressed", SUPPRESSION_NONE},
        {"{\"eventType\":\"Reject\",\"reject\":{\"reason\":\"Bad content\"}," MAIL "}",
         STATUS_FAILED, OUTCOME_FAILED, "rejected", SUPPRESSION_NONE},
        {"{\"eventType\":\"Rendering Failure\",\"failure\":{}," MAIL "}", STATUS_FAILED,
         OUTCOME_FAILED, "rejected", SUPPRESSION_NONE},
    };
    Arena *arena = arena_new(0);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        Meaning wrapped = CASES[i];
        wrapped.body = wrap(arena, CASES[i].body);
        each_means(&ses_callback, &wrapped, 1);
    }
    static const char *const IGNORED[] = {
        "{\"eventType\":\"Send\",\"send\":{}," MAIL "}",
        "{\"eventType\":\"DeliveryDelay\",\"deliveryDelay\":{}," MAIL "}",
        "{\"eventType\":\"Complaint\",\"complaint\":{\"complaintFeedbackType\":\"not-spam\"}," MAIL
        "}",
        "Successfully validated SNS topic for Amazon SES event publishing.",
        "[]",
        "",
    };
    for (size_t i = 0; i < sizeof IGNORED / sizeof *IGNORED; i++) {
        const char *body = wrap(arena, IGNORED[i]);
        each_is_ignored(&ses_callback, &body, 1);
    }
    static const char *const REFUSED[] = {"", "[]", "{}", "{\"Type\":\"Notification\"}"};
    each_is_refused(&ses_callback, REFUSED, sizeof REFUSED / sizeof *REFUSED);
    arena_free(arena);
}

static void each_recipient_of_a_bounce_is_an_event(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    CallbackBatch batch = read_all(
        &ses_callback,
        wrap(
            arena,
            "{\"eventType\":\"Bounce\",\"bounce\":{\"bounceType\":\"Permanent\",\"bounceSubType\":"
            "\"General\",\"feedbackId\":\"f-1\",\"timestamp\":\"2026-11-20T10:00:05.250Z\","
            "\"bouncedRecipients\":[{\"emailAddress\":\"alice@example.com\",\"status\":\"5.1.1\","
            "\"diagnosticCode\":\"smtp; 550 5.1.1 alice.smith@example.com\"},"
            "{\"emailAddress\":\"bob@example.com\"}]}," MAIL "}"),
        arena);
    assert_int_equal(batch.count, 2);
    const CallbackEvent *event = &batch.events[0];
    assert_true(str_eq(event->id, STR("f-1")));
    assert_true(str_eq(event->notification_id, STR(NTF)));
    assert_int_equal(event->attempt, 2);
    assert_true(str_eq(event->message_id, STR("010f-1")));
    assert_true(str_eq(event->email, STR("alice@example.com")));
    assert_true(str_eq(event->enhanced_code, STR("5.1.1")));
    assert_null(strstr(arena_cstr(arena, event->text), "alice.smith"));
    assert_int_equal(event->at_us % 60000000, 5250000);
    assert_true(str_eq(batch.events[1].email, STR("bob@example.com")));
    arena_free(arena);
}

static void a_notification_is_found_by_our_message_id_too(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    CallbackEvent event = read_one(
        &ses_callback,
        wrap(
            arena,
            "{\"notificationType\":\"Delivery\",\"delivery\":{},\"mail\":{\"messageId\":\"x\","
            "\"headers\":[{\"name\":\"From\",\"value\":\"" NTF "\"},{\"name\":\"Message-ID\","
            "\"value\":\"<" NTF "@mail.acme.test>\"}]}}"),
        arena);
    assert_true(str_eq(event.notification_id, STR(NTF)));
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_published_messages_verify),
        cmocka_unit_test(whatever_differs_is_refused),
        cmocka_unit_test(a_certificate_is_one_in_force_and_nothing_else),
        cmocka_unit_test(only_the_topics_own_host_is_asked),
        cmocka_unit_test(each_event_has_its_meaning),
        cmocka_unit_test(each_recipient_of_a_bounce_is_an_event),
        cmocka_unit_test(a_notification_is_found_by_our_message_id_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
