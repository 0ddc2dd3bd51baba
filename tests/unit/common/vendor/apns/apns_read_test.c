// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/apns/apns.h"
#include "tests/unit/common/vendor/vendor_case.h"

#define WHY(status, reason, state, reply, wait)                                                    \
    {                                                                                              \
        reason, status, NULL, NULL, "{\"reason\":\"" reason "\"}", state, reply, wait, reason      \
    }

// clang-format off
static const CaseRow rows[] = {
    WHY(400, "BadDeviceToken", SEND_ANSWERED, REPLY_BAD_ADDRESS, 0),
    WHY(400, "DeviceTokenNotForTopic", SEND_ANSWERED, REPLY_ELSEWHERE, 0),
    WHY(400, "BadCollapseId", SEND_ANSWERED, REPLY_TERMINAL, 0),
    WHY(400, "BadExpirationDate", SEND_ANSWERED, REPLY_TERMINAL, 0),
    WHY(400, "BadMessageId", SEND_ANSWERED, REPLY_TERMINAL, 0),
    WHY(400, "BadPriority", SEND_ANSWERED, REPLY_TERMINAL, 0),
    WHY(400, "DuplicateHeaders", SEND_ANSWERED, REPLY_TERMINAL, 0),
    WHY(400, "InvalidPushType", SEND_ANSWERED, REPLY_TERMINAL, 0),
    WHY(400, "MissingDeviceToken", SEND_ANSWERED, REPLY_TERMINAL, 0),
    WHY(400, "PayloadEmpty", SEND_ANSWERED, REPLY_TERMINAL, 0),
    WHY(400, "IdleTimeout", SEND_ANSWERED, REPLY_RETRY, 10000),
    WHY(400, "BadTopic", SEND_ANSWERED, REPLY_CONFIG, 0),
    WHY(400, "MissingTopic", SEND_ANSWERED, REPLY_CONFIG, 0),
    WHY(400, "TopicDisallowed", SEND_ANSWERED, REPLY_CONFIG, 0),
    WHY(403, "BadCertificate", SEND_ANSWERED, REPLY_CONFIG, 0),
    WHY(403, "BadCertificateEnvironment", SEND_ANSWERED, REPLY_CONFIG, 0),
    WHY(403, "BadEnvironmentKeyIdInToken", SEND_ANSWERED, REPLY_CONFIG, 0),
    WHY(403, "UnrelatedKeyIdInToken", SEND_ANSWERED, REPLY_CONFIG, 0),
    WHY(403, "Forbidden", SEND_ANSWERED, REPLY_CONFIG, 0),
    WHY(403, "InvalidProviderToken", SEND_ANSWERED, REPLY_CONFIG, 0),
    WHY(403, "MissingProviderToken", SEND_ANSWERED, REPLY_CONFIG, 0),
    WHY(403, "ExpiredProviderToken", SEND_ANSWERED, REPLY_RETRY, 0),
    WHY(404, "BadPath", SEND_ANSWERED, REPLY_TERMINAL, 0),
    WHY(405, "MethodNotAllowed", SEND_ANSWERED, REPLY_TERMINAL, 0),
    {"unregistered", 410, NULL, NULL, "{\"reason\":\"Unregistered\",\"timestamp\":1795723199000}", SEND_ANSWERED, REPLY_BAD_ADDRESS, 0, "Unregistered"},
    WHY(410, "ExpiredToken", SEND_ANSWERED, REPLY_BAD_ADDRESS, 0),
    {"410 alone", 410, NULL, NULL, "", SEND_ANSWERED, REPLY_BAD_ADDRESS, 0, ""},
    WHY(413, "PayloadTooLarge", SEND_ANSWERED, REPLY_TERMINAL, 0),
    WHY(429, "TooManyRequests", SEND_ANSWERED, REPLY_THROTTLED, 60000),
    WHY(429, "TooManyProviderTokenUpdates", SEND_ANSWERED, REPLY_RETRY, 60000),
    {"429 alone", 429, NULL, NULL, "", SEND_ANSWERED, REPLY_THROTTLED, 60000, ""},
    WHY(500, "InternalServerError", SEND_UNKNOWN, REPLY_RETRY, 10000),
    {"500 named otherwise", 500, NULL, NULL, "{\"reason\":\"Unregistered\"}", SEND_UNKNOWN, REPLY_RETRY, 0, "Unregistered"},
    WHY(503, "ServiceUnavailable", SEND_ANSWERED, REPLY_RETRY, 10000),
    WHY(503, "Shutdown", SEND_ANSWERED, REPLY_RETRY, 0),
    {"a reason that is new", 400, NULL, NULL, "{\"reason\":\"New\"}", SEND_ANSWERED, REPLY_TERMINAL, 0, "New"},
};
// clang-format on

static void every_reason_has_its_class(void **state)
{
    (void)state;
    case_rows(&apns_api, rows, sizeof rows / sizeof *rows);
}

static void too_many_requests_are_one_devices(void **state)
{
    (void)state;
    static const struct {
        int status;
        const char *reason;
        bool of_recipient;
    } cases[] = {
        {429, "TooManyRequests", true},
        {429, "TooManyProviderTokenUpdates", false},
        {503, "ServiceUnavailable", false},
        {410, "Unregistered", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Arena *arena = arena_new(0);
        SendResult result;
        const char *body = arena_printf(arena, "{\"reason\":\"%s\"}", cases[i].reason);
        VendorAnswer answer = {.status = cases[i].status, .body = str_from(body)};
        apns_read(&answer, arena, &result);
        assert_int_equal(result.of_recipient, cases[i].of_recipient);
        arena_free(arena);
    }
}

static void an_accepted_push_has_its_id(void **state)
{
    (void)state;
    case_accepted(
        &apns_api, 200, "apns-id", "eabeae54-14a8-11e5-b60b-1697f925ec7b", "",
        "eabeae54-14a8-11e5-b60b-1697f925ec7b");
}

static void only_an_expired_token_is_stale(void **state)
{
    (void)state;
    const VendorPair none = {STR_EMPTY, STR_EMPTY};
    Arena *arena = arena_new(0);
    VendorAnswer expired = case_answer(403, &none, "{\"reason\":\"ExpiredProviderToken\"}");
    VendorAnswer invalid = case_answer(403, &none, "{\"reason\":\"InvalidProviderToken\"}");
    assert_true(apns_stale(&expired, arena));
    assert_false(apns_stale(&invalid, arena));
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_reason_has_its_class),
        cmocka_unit_test(too_many_requests_are_one_devices),
        cmocka_unit_test(an_accepted_push_has_its_id),
        cmocka_unit_test(only_an_expired_token_is_stale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
