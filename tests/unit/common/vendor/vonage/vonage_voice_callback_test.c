// SPDX-License-Identifier: Apache-2.0
// VECTOR and its secret are of vonage-ruby-sdk, test/vonage/test.rb (the body behind its hash is
// not published); the other tokens were made by PyJWT, but ALG_NONE, which claims another
// algorithm.
#include "tests/unit/common/vendor/callbacks.h"

#define SECRET "ZYtdTtGV3BCFN7tWmOWr1md66XsquMggr4W2cTtXtcPgfnI0Xw"
#define WRONG "ZYtdTtGV3BCFN7tWmOWr1md66XsquMggr4W2cTtXtcPgf55555"
#define VECTOR                                                                                     \
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpYXQiOjE1ODc0OTQ5NjIsImp0aSI6ImM1YmE4ZjI0LTFhMTQtNGM" \
    "xMC1iZmRmLTNmYmU4Y2U1MTFiNSIsImlzcyI6IlZvbmFnZSIsInBheWxvYWRfaGFzaCI6ImQ2YzBlNzRiNTg1N2RmMjB" \
    "lM2I3ZTUxYjMwYzBjMmE0MGVjNzNhNzc4NzliNmYwNzRkZGM3YTIzMTdkZDAzMWIiLCJhcGlfa2V5IjoiYTFiMmMzZCI" \
    "sImFwcGxpY2F0aW9uX2lkIjoiYWFhYWFhYWEtYmJiYi1jY2NjLWRkZGQtMDEyMzQ1Njc4OWFiIn0.JQRKi1d0SQitmjP" \
    "INfTWMpt3XZkGsLbD7EjCdXoNSbk"
#define CLAIMS                                                                                     \
    "eyJpYXQiOjE3OTU3MjMyMDAsImp0aSI6ImM1YmE4ZjI0IiwiaXNzIjoiVm9uYWdlIiwicGF5bG9hZF9oYXNoIjoiZmNm" \
    "ZmFhYjdkZWYxZWQ1NmM4OWRlYTg2NThlZDAxYjBmNmE5MzE3N2U2MzdhMTBiZjI3MmJmODQ4NjY3ZmM4YiIsImFwaV9r" \
    "ZXkiOiJhMWIyYzNkIn0"
#define GOOD                                                                                       \
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9." CLAIMS ".GBi3NVCrIYzQ82IfMgIZprt7q5CwzCDZ3wN8NWJFwu8"
#define HS512                                                                                      \
    "eyJhbGciOiJIUzUxMiIsInR5cCI6IkpXVCJ9." CLAIMS                                                 \
    ".LVXXkKpAv2jik9kdkLBiILdZeDnL2hEA60jMklpYk37L9A5q-veJn-gATOfgS7OcWdiIaMwiLkxuaroLQanveQ"
#define ALG_NONE "eyJhbGciOiJub25lIn0." CLAIMS ".XWmny2W1eEvx_KErLZLGUmMXTg7CliWppvgudWw7yvY"
#define NO_HASH                                                                                    \
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpYXQiOjE3OTU3MjMyMDAsImp0aSI6ImM1YmE4ZjI0IiwiaXNzIjo" \
    "iVm9uYWdlIiwiYXBpX2tleSI6ImExYjJjM2QifQ.FgAgc-gqQfnmfpwqSrvT_iGiPOXg4_y_34DnEaF-I2o"
#define BODY "{\"status\":\"machine\",\"uuid\":\"aaaaaaaa-bbbb-cccc-dddd-0123456789ab\"}"

enum { AT_S = 1795723200, VECTOR_S = 1587494962 };

static CallbackVerdict judge(
    const char *authorization, const char *secret, const char *body, int64_t at_s)
{
    const CallbackKey keys[] = {
        {STR("other"), STR("another_secret")}, {STR("main"), str_from(secret)}};
    const VendorPair header = {STR("authorization"), str_from(authorization)};
    CallbackRequest request = {
        .headers = &header,
        .header_count = 1,
        .body = str_from(body),
        .received_at_us = at_s * 1000000,
        .max_age_s = 300};
    size_t which = 9;
    CallbackVerdict verdict = ask(&vonage_voice_callback, &request, keys, 2, &which);
    assert_int_equal(which, verdict == CALLBACK_GOOD ? 1 : 9);
    return verdict;
}

static void the_token_is_signed_and_names_its_body(void **state)
{
    (void)state;
    assert_int_equal(judge("Bearer " GOOD, SECRET, BODY, AT_S), CALLBACK_GOOD);
    assert_int_equal(judge("bearer " GOOD, SECRET, BODY, AT_S + 300), CALLBACK_GOOD);
    assert_int_equal(judge("Bearer " GOOD, WRONG, BODY, AT_S), CALLBACK_BAD);
    assert_int_equal(judge("Bearer " GOOD, SECRET, BODY " ", AT_S), CALLBACK_BAD);
    assert_int_equal(judge("Bearer " GOOD, SECRET, BODY, AT_S + 301), CALLBACK_STALE);
    assert_int_equal(judge("Bearer " GOOD, SECRET, BODY, AT_S - 301), CALLBACK_STALE);
    assert_int_equal(judge("Bearer " ALG_NONE, SECRET, BODY, AT_S), CALLBACK_BAD);
    assert_int_equal(judge("Bearer " NO_HASH, SECRET, BODY, AT_S), CALLBACK_BAD);
}

// Its body is not known: with the right secret it is the hash that does not fit, at its own time.
static void the_vector_of_vonages_own_library_fits(void **state)
{
    (void)state;
    assert_int_equal(judge("Bearer " VECTOR, SECRET, BODY, VECTOR_S + 301), CALLBACK_STALE);
    assert_int_equal(judge("Bearer " VECTOR, WRONG, BODY, VECTOR_S + 301), CALLBACK_BAD);
    assert_int_equal(judge("Bearer " VECTOR, SECRET, BODY, VECTOR_S), CALLBACK_BAD);
}

static void what_is_no_token_is_unsigned(void **state)
{
    (void)state;
    static const char *const NONE[] = {
        "",
        "Bearer ",
        "Basic " GOOD,
        GOOD,
        "Bearer a.b",
        "Bearer ...",
        "Bearer " GOOD ".x",
        "Bearer " HS512,
        "Bearer \x01.\x02.\x03"};
    for (size_t i = 0; i < sizeof NONE / sizeof *NONE; i++) {
        assert_int_equal(judge(NONE[i], SECRET, BODY, AT_S), CALLBACK_UNSIGNED);
    }
    assert_int_equal(vonage_voice_callback.unsigned_status, 503);
}

#define SAYS(status, more)                                                                         \
    "{\"status\":\"" status "\",\"uuid\":\"63f61863\",\"to\":\"4915112345678\","                   \
    "\"timestamp\":\"2026-11-26T20:00:00.000Z\"" more "}"

// clang-format off
static const Meaning MEANINGS[] = {
    {SAYS("started", ""),                          STATUS_SENT,      OUTCOME_ACCEPTED,  "",            SUPPRESSION_NONE},
    {SAYS("human", ""),                            STATUS_DELIVERED, OUTCOME_DELIVERED, "",            SUPPRESSION_NONE},
    {SAYS("machine", ""),                          STATUS_DELIVERED, OUTCOME_DELIVERED, "voicemail",   SUPPRESSION_NONE},
    {SAYS("completed", ",\"duration\":\"9\""),     STATUS_DELIVERED, OUTCOME_DELIVERED, "",            SUPPRESSION_NONE},
    {SAYS("busy", ""),                             STATUS_FAILED,    OUTCOME_FAILED,    "busy",        SUPPRESSION_NONE},
    {SAYS("timeout", ""),                          STATUS_FAILED,    OUTCOME_FAILED,    "no_answer",   SUPPRESSION_NONE},
    {SAYS("unanswered", ",\"detail\":\"unavailable\""), STATUS_FAILED, OUTCOME_FAILED,  "no_answer",   SUPPRESSION_NONE},
    {SAYS("cancelled", ""),                        STATUS_FAILED,    OUTCOME_FAILED,    "canceled",    SUPPRESSION_NONE},
    {SAYS("rejected", ""),                         STATUS_FAILED,    OUTCOME_FAILED,    "rejected",    SUPPRESSION_NONE},
    {SAYS("failed", ",\"sip_code\":404"),          STATUS_BOUNCED,   OUTCOME_BOUNCE,    "hard_bounce", SUPPRESSION_INVALID_ADDRESS},
    {SAYS("failed", ",\"sip_code\":\"484\""),      STATUS_BOUNCED,   OUTCOME_BOUNCE,    "hard_bounce", SUPPRESSION_INVALID_ADDRESS},
    {SAYS("failed", ",\"sip_code\":503"),          STATUS_FAILED,    OUTCOME_FAILED,    "rejected",    SUPPRESSION_NONE},
    {SAYS("failed", ",\"sip_code\":[404]"),        STATUS_FAILED,    OUTCOME_FAILED,    "rejected",    SUPPRESSION_NONE},
};
// clang-format on

static void each_event_of_a_call_is_what_it_says(void **state)
{
    (void)state;
    each_means(&vonage_voice_callback, MEANINGS, sizeof MEANINGS / sizeof *MEANINGS);
    static const char *const ignored[] = {
        SAYS("ringing", ""), SAYS("answered", ""), SAYS("disconnected", "")};
    each_is_ignored(&vonage_voice_callback, ignored, sizeof ignored / sizeof *ignored);
    static const char *const refused[] = {"", "[]", "{}", "{\"status\":7}", "status=busy"};
    each_is_refused(&vonage_voice_callback, refused, sizeof refused / sizeof *refused);
}

static void an_event_has_the_call_the_number_and_the_time(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    CallbackEvent event =
        read_one(&vonage_voice_callback, SAYS("failed", ",\"sip_code\":404"), arena);
    assert_true(str_eq(event.message_id, STR("63f61863")));
    assert_true(str_eq(event.email, STR("+4915112345678")));
    assert_true(str_eq(event.text, STR("failed 404")));
    assert_int_equal(event.at_us, INT64_C(1795723200000000));
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_token_is_signed_and_names_its_body),
        cmocka_unit_test(the_vector_of_vonages_own_library_fits),
        cmocka_unit_test(what_is_no_token_is_unsigned),
        cmocka_unit_test(each_event_of_a_call_is_what_it_says),
        cmocka_unit_test(an_event_has_the_call_the_number_and_the_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
