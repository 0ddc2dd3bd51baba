// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/fcm/fcm.h"
#include "tests/unit/common/vendor/vendor_case.h"

// As the REST reference has it.
#define SAYS(status, code)                                                                         \
    "{\"error\":{\"code\":0,\"message\":\"m\",\"status\":\"" status                                \
    "\",\"details\":[{\"@type\":\"type.googleapis.com/"                                            \
    "google.firebase.fcm.v1.FcmError\",\"errorCode\":\"" code "\"}]}}"
#define BAD_FIELD(field)                                                                           \
    "{\"error\":{\"code\":400,\"message\":\"m\",\"status\":\"INVALID_ARGUMENT\",\"details\":[{\"@" \
    "type\":\"type.googleapis.com/"                                                                \
    "google.firebase.fcm.v1.FcmError\",\"errorCode\":\"INVALID_ARGUMENT\"},{\"@type\":\"type."     \
    "googleapis.com/google.rpc.BadRequest\",\"fieldViolations\":[{\"field\":\"" field              \
    "\",\"description\":\"d\"}]}]}}"

// clang-format off
static const CaseRow rows[] = {
    {"gone", 404, NULL, NULL, SAYS("NOT_FOUND", "UNREGISTERED"), SEND_ANSWERED, REPLY_BAD_ADDRESS, 0, "UNREGISTERED m"},
    {"bad token", 400, NULL, NULL, BAD_FIELD("message.token"), SEND_ANSWERED, REPLY_BAD_ADDRESS, 0, "INVALID_ARGUMENT m"},
    {"bad field", 400, NULL, NULL, BAD_FIELD("message.android.ttl"), SEND_ANSWERED, REPLY_TERMINAL, 0, "INVALID_ARGUMENT m"},
    {"another project's", 403, NULL, NULL, SAYS("PERMISSION_DENIED", "SENDER_ID_MISMATCH"), SEND_ANSWERED, REPLY_ELSEWHERE, 0, "SENDER_ID_MISMATCH m"},
    {"quota", 429, NULL, NULL, SAYS("RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED"), SEND_ANSWERED, REPLY_THROTTLED, 60000, "QUOTA_EXCEEDED m"},
    {"quota, retry-after", 429, "Retry-After", "7", SAYS("RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED"), SEND_ANSWERED, REPLY_THROTTLED, 7000, "QUOTA_EXCEEDED m"},
    {"429 alone", 429, NULL, NULL, "", SEND_ANSWERED, REPLY_THROTTLED, 60000, ""},
    {"busy", 503, NULL, NULL, SAYS("UNAVAILABLE", "UNAVAILABLE"), SEND_ANSWERED, REPLY_RETRY, 10000, "UNAVAILABLE m"},
    {"internal", 500, NULL, NULL, SAYS("INTERNAL", "INTERNAL"), SEND_UNKNOWN, REPLY_RETRY, 10000, "INTERNAL m"},
    {"500 named otherwise", 500, NULL, NULL, SAYS("INTERNAL", "UNREGISTERED"), SEND_UNKNOWN, REPLY_RETRY, 0, "UNREGISTERED m"},
    {"APNs key", 401, NULL, NULL, SAYS("UNAUTHENTICATED", "THIRD_PARTY_AUTH_ERROR"), SEND_ANSWERED, REPLY_CONFIG, 0, "THIRD_PARTY_AUTH_ERROR m"},
    {"token of ours", 401, NULL, NULL, "{\"error\":{\"status\":\"UNAUTHENTICATED\",\"message\":\"m\"}}", SEND_ANSWERED, REPLY_CONFIG, 0, "UNAUTHENTICATED m"},
    {"no right", 403, NULL, NULL, "{\"error\":{\"status\":\"PERMISSION_DENIED\",\"message\":\"m\"}}", SEND_ANSWERED, REPLY_CONFIG, 0, "PERMISSION_DENIED m"},
    {"no such path", 404, NULL, NULL, "<html>", SEND_ANSWERED, REPLY_CONFIG, 0, ""},
    {"502", 502, NULL, NULL, "", SEND_UNKNOWN, REPLY_RETRY, 0, ""},
    {"504", 504, NULL, NULL, "", SEND_UNKNOWN, REPLY_RETRY, 0, ""},
};
// clang-format on

static void every_row_of_the_class_table_holds(void **state)
{
    (void)state;
    case_rows(&fcm_api, rows, sizeof rows / sizeof *rows);
}

static void an_accepted_push_has_its_name(void **state)
{
    (void)state;
    case_accepted(
        &fcm_api, 200, NULL, NULL,
        "{\"name\":\"projects/acme-1/messages/0:1500415314455276%31bd1c96\"}",
        "projects/acme-1/messages/0:1500415314455276%31bd1c96");
    case_accepted(&fcm_api, 200, NULL, NULL, "{", "");
}

static bool is_stale(int status, const char *body)
{
    Arena *arena = arena_new(0);
    const VendorPair none = {STR_EMPTY, STR_EMPTY};
    VendorAnswer answer = case_answer(status, &none, body);
    bool stale = fcm_stale(&answer, arena);
    arena_free(arena);
    return stale;
}

static void a_refused_token_is_no_other_refusal(void **state)
{
    (void)state;
    assert_true(is_stale(401, "{\"error\":{\"status\":\"UNAUTHENTICATED\"}}"));
    assert_false(is_stale(401, SAYS("UNAUTHENTICATED", "THIRD_PARTY_AUTH_ERROR")));
    assert_false(is_stale(403, "{\"error\":{\"status\":\"PERMISSION_DENIED\"}}"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_of_the_class_table_holds),
        cmocka_unit_test(an_accepted_push_has_its_name),
        cmocka_unit_test(a_refused_token_is_no_other_refusal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
