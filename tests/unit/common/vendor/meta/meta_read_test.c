// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/meta/meta.h"

#include "tests/unit/common/vendor/phone_case.h"

#define SAYS(code)                                                                                 \
    "{\"error\":{\"message\":\"(#" code ") title\",\"type\":\"OAuthException\",\"code\":" code     \
    ",\"error_data\":{\"messaging_product\":\"whatsapp\",\"details\":\"why\"},\"fbtrace_id\":"     \
    "\"A\"}}"
#define UNKNOWN                                                                                    \
    "{\"error\":{\"message\":\"(#132001) Template name does not exist in the translation\","       \
    "\"code\":132001,\"error_data\":{\"details\":\"template name (order) does not exist in "       \
    "de\"}}}"

// clang-format off
static const CaseRow ROWS[] = {
    {"throughput",  400, NULL, NULL, SAYS("130429"), SEND_ANSWERED, REPLY_THROTTLED, 0,        "130429 why"},
    {"account",     429, NULL, NULL, SAYS("80007"),  SEND_ANSWERED, REPLY_THROTTLED, 0,        "80007 why"},
    {"pair",        400, NULL, NULL, SAYS("131056"), SEND_ANSWERED, REPLY_THROTTLED, 6000,     "131056 why"},
    {"ecosystem",   400, NULL, NULL, SAYS("131049"), SEND_ANSWERED, REPLY_RETRY,     86400000, "131049 why"},
    {"overloaded",  503, NULL, NULL, SAYS("131016"), SEND_ANSWERED, REPLY_RETRY,     0,        "131016 why"},
    {"window",      400, NULL, NULL, SAYS("131047"), SEND_ANSWERED, REPLY_ELSEWHERE, 0,        "131047 why"},
    {"undelivered", 400, NULL, NULL, SAYS("131026"), SEND_ANSWERED, REPLY_ELSEWHERE, 0,        "131026 why"},
    {"template",    404, NULL, NULL, UNKNOWN,        SEND_ANSWERED, REPLY_ELSEWHERE, 0,
     "132001 template name (order) does not exist in de"},
    {"parameters",  400, NULL, NULL, SAYS("132000"), SEND_ANSWERED, REPLY_TERMINAL,  0,        "132000 why"},
    {"opted out",   400, NULL, NULL, SAYS("131050"), SEND_ANSWERED, REPLY_TERMINAL,  0,        "131050 why"},
    {"not listed",  400, NULL, NULL, SAYS("999999"), SEND_ANSWERED, REPLY_TERMINAL,  0,        "999999 why"},
    {"token",       401, NULL, NULL, SAYS("190"),    SEND_ANSWERED, REPLY_CONFIG,    0,        "190 why"},
    {"app",         400, NULL, NULL, SAYS("0"),      SEND_ANSWERED, REPLY_CONFIG,    0,        "0 why"},
    {"locked",      403, NULL, NULL, SAYS("131031"), SEND_ANSWERED, REPLY_CONFIG,    0,        "131031 why"},
    {"no details",  400, NULL, NULL, "{\"error\":{\"message\":\"m\",\"code\":100}}", SEND_ANSWERED, REPLY_TERMINAL, 0, "100 m"},
    {"no JSON",     400, NULL, NULL, "x",            SEND_ANSWERED, REPLY_TERMINAL,  0,        ""},
    {"uncertain",   500, NULL, NULL, SAYS("131000"), SEND_UNKNOWN,  REPLY_RETRY,     0,        "131000 why"},
    {"uncertain",   500, NULL, NULL, SAYS("131056"), SEND_UNKNOWN,  REPLY_RETRY,     0,        "131056 why"},
};
// clang-format on

static void each_code_has_its_class(void **state)
{
    (void)state;
    case_rows(&meta_api, ROWS, sizeof ROWS / sizeof *ROWS);
    case_accepted(
        &meta_api, 200, NULL, NULL,
        "{\"messaging_product\":\"whatsapp\",\"contacts\":[{\"input\":\"4915\",\"wa_id\":\"4915\"}]"
        ",\"messages\":[{\"id\":\"wamid.HBgL\",\"message_status\":\"accepted\"}]}",
        "wamid.HBgL");
    case_accepted(&meta_api, 200, NULL, NULL, "{\"messages\":[]}", "");
}

static bool is_of_recipient(const char *body)
{
    Arena *arena = arena_new(0);
    VendorPair none = {STR_EMPTY, STR_EMPTY};
    SendResult result;
    VendorAnswer answer = case_answer(400, &none, body);
    meta_api.read(&answer, arena, &result);
    bool of_recipient = result.of_recipient;
    arena_free(arena);
    return of_recipient;
}

static void the_limit_of_a_pair_is_not_the_vendors(void **state)
{
    (void)state;
    assert_true(is_of_recipient(SAYS("131056")));
    assert_false(is_of_recipient(SAYS("130429")));
}

static void a_caller_reads_why(void **state)
{
    (void)state;
    assert_string_equal(vendor_reason(&meta_api, STR("131047 why"))->reason_code, "window_closed");
    assert_string_equal(vendor_reason(&meta_api, STR("132001"))->reason_code, "unknown_vendor_template");
    assert_null(vendor_reason(&meta_api, STR("1320010 why")));
    assert_null(vendor_reason(&meta_api, STR_EMPTY));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_code_has_its_class),
        cmocka_unit_test(the_limit_of_a_pair_is_not_the_vendors),
        cmocka_unit_test(a_caller_reads_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
