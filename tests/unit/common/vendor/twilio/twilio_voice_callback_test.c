// SPDX-License-Identifier: Apache-2.0
// The signature is of twilio-node's spec/validation.spec.js, which is about a call.
#include "tests/unit/common/vendor/callbacks.h"

#define FORM                                                                                       \
    "CallSid=CA1234567890ABCDE&Caller=%2B14158675309&Digits=1234&From=%2B14158675309&"             \
    "To=%2B18005551212"

static void it_is_signed_as_reports_of_messages(void **state)
{
    (void)state;
    const CallbackKey keys[] = {{STR("old"), STR("54321")}, {STR("new"), STR("12345")}};
    const VendorPair header = {STR("X-Twilio-Signature"), STR("RSOYDt4T1cUTdK1PDd93/VVr8B8=")};
    CallbackRequest request = {
        .url = STR("https://mycompany.com/myapp.php?foo=1&bar=2"),
        .headers = &header,
        .header_count = 1,
        .body = STR(FORM)};
    size_t which = 9;
    assert_int_equal(ask(&twilio_voice_callback, &request, keys, 2, &which), CALLBACK_GOOD);
    assert_int_equal(which, 1);
    request.body = STR(FORM "1");
    assert_int_equal(ask(&twilio_voice_callback, &request, keys, 2, &which), CALLBACK_BAD);
    assert_true(twilio_voice_callback.signs_url && twilio_voice_callback.needs_all);
}

#define SAYS(status, more)                                                                         \
    "CallSid=CA01&To=%2B4915112345678&CallStatus=" status                                          \
    "&Timestamp=Thu%2C+26+Nov+2026+20%3A00%3A00+%2B0000" more

// clang-format off
static const Meaning MEANINGS[] = {
    {SAYS("completed", "&AnsweredBy=human"),         STATUS_DELIVERED, OUTCOME_DELIVERED, "",            SUPPRESSION_NONE},
    {SAYS("completed", "&AnsweredBy=unknown"),       STATUS_DELIVERED, OUTCOME_DELIVERED, "",            SUPPRESSION_NONE},
    {SAYS("completed", "&SipResponseCode=200"),      STATUS_DELIVERED, OUTCOME_DELIVERED, "",            SUPPRESSION_NONE},
    {SAYS("completed", "&AnsweredBy=machine_start"), STATUS_DELIVERED, OUTCOME_DELIVERED, "voicemail",   SUPPRESSION_NONE},
    {SAYS("completed", "&AnsweredBy=machine_end_beep"), STATUS_DELIVERED, OUTCOME_DELIVERED, "voicemail", SUPPRESSION_NONE},
    {SAYS("completed", "&AnsweredBy=fax"),           STATUS_FAILED,    OUTCOME_FAILED,    "fax",         SUPPRESSION_NONE},
    {SAYS("busy", "&SipResponseCode=486"),           STATUS_FAILED,    OUTCOME_FAILED,    "busy",        SUPPRESSION_NONE},
    {SAYS("no-answer", ""),                          STATUS_FAILED,    OUTCOME_FAILED,    "no_answer",   SUPPRESSION_NONE},
    {SAYS("canceled", ""),                           STATUS_FAILED,    OUTCOME_FAILED,    "canceled",    SUPPRESSION_NONE},
    {SAYS("failed", "&SipResponseCode=404"),         STATUS_BOUNCED,   OUTCOME_BOUNCE,    "hard_bounce", SUPPRESSION_INVALID_ADDRESS},
    {SAYS("failed", "&SipResponseCode=484"),         STATUS_BOUNCED,   OUTCOME_BOUNCE,    "hard_bounce", SUPPRESSION_INVALID_ADDRESS},
    {SAYS("failed", "&SipResponseCode=503"),         STATUS_FAILED,    OUTCOME_FAILED,    "rejected",    SUPPRESSION_NONE},
    {SAYS("failed", ""),                             STATUS_FAILED,    OUTCOME_FAILED,    "rejected",    SUPPRESSION_NONE},
};
// clang-format on

static void each_end_of_a_call_is_what_it_says(void **state)
{
    (void)state;
    each_means(&twilio_voice_callback, MEANINGS, sizeof MEANINGS / sizeof *MEANINGS);
    static const char *const ignored[] = {SAYS("ringing", ""), SAYS("in-progress", "")};
    each_is_ignored(&twilio_voice_callback, ignored, sizeof ignored / sizeof *ignored);
    static const char *const refused[] = {"", "{}", "CallSid=CA01", "CallStatus=%zz"};
    each_is_refused(&twilio_voice_callback, refused, sizeof refused / sizeof *refused);
}

static void an_event_has_the_call_the_number_and_the_time(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    CallbackEvent event =
        read_one(&twilio_voice_callback, SAYS("failed", "&SipResponseCode=404"), arena);
    assert_true(str_eq(event.message_id, STR("CA01")));
    assert_true(str_eq(event.email, STR("+4915112345678")));
    assert_true(str_eq(event.text, STR("failed 404")));
    assert_int_equal(event.at_us, INT64_C(1795723200000000));
    event =
        read_one(&twilio_voice_callback, "CallSid=CA01&To=4915112345678&CallStatus=busy", arena);
    assert_true(str_eq(event.email, STR("+4915112345678")));
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_signed_as_reports_of_messages),
        cmocka_unit_test(each_end_of_a_call_is_what_it_says),
        cmocka_unit_test(an_event_has_the_call_the_number_and_the_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
