// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/apns/apns.h"
#include "tests/unit/common/vendor/push/push_case.h"

#define TOKEN "00fc13adff785122b4ad28809a3420982341241421348097878e577c991de8f0"

static const VendorPair settings[] = {
    {{"team_id", 7}, {"DEF123GHIJ", 10}}, {{"topic", 5}, {"com.example.App", 15}}};

static VendorAccount account_of(Arena *arena)
{
    return (VendorAccount){
        .name = STR("main"),
        .id = STR("ABC123DEFG"),
        .secret = case_file("rfc7515_es256.pem", arena),
        .bearer = STR("aaa.bbb.ccc"),
        .settings = settings,
        .setting_count = 2};
}

static void a_push_is_this_to_the_byte(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    VendorAccount account = account_of(arena);
    VendorMail push = case_push(STR(TOKEN));
    VendorRequest request;
    push.data = STR("{\"aps\":{\"badge\":3,\"sound\":\"default\",\"alert\":\"x\"},\"order\":17}");
    case_build(&apns_api, &push, &account, arena, &request);
    case_request_is(
        &request, arena, "POST", "https://api.push.apple.com/3/device/" TOKEN,
        "Authorization: bearer aaa.bbb.ccc\napns-topic: com.example.App\napns-push-type: alert\n"
        "apns-priority: 10\napns-expiration: 1795723800\napns-collapse-id: " CASE_NID "\n"
        "apns-id: 67768586-773e-8210-9a81-71c287e08d74\nContent-Type: application/json\n",
        "{\"aps\":{\"badge\":3,\"sound\":\"default\",\"alert\":{\"title\":\"Your order\","
        "\"body\":\"It is \\\"there\\\" \xe2\x98\x83\"}},\"nid\":\"" CASE_NID "\",\"order\":17}");
    arena_free(arena);
}

static void data_alone_goes_in_the_background(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    VendorAccount account = account_of(arena);
    VendorMail push = case_push(STR(TOKEN));
    VendorRequest request;
    push.subject = push.text = STR_EMPTY;
    push.expires_at_us = 0;
    case_build(&apns_api, &push, &account, arena, &request);
    const char *headers = case_headers(&request, arena);
    assert_non_null(strstr(headers, "apns-push-type: background\napns-priority: 5\n"));
    assert_null(strstr(headers, "apns-expiration"));
    assert_string_equal(
        arena_cstr(arena, request.body), "{\"aps\":{\"content-available\":1},\"nid\":\"" CASE_NID
                                         "\",\"order\":17,\"link\":\"/o/17\"}");
    arena_free(arena);
}

static void an_attempt_has_an_id_of_its_own(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    VendorAccount account = account_of(arena);
    VendorMail push = case_push(STR(TOKEN));
    VendorRequest first, again, next;
    case_build(&apns_api, &push, &account, arena, &first);
    case_build(&apns_api, &push, &account, arena, &again);
    push.attempt = 3;
    case_build(&apns_api, &push, &account, arena, &next);
    assert_string_equal(case_headers(&first, arena), case_headers(&again, arena));
    assert_string_not_equal(case_headers(&first, arena), case_headers(&next, arena));
    arena_free(arena);
}

static void what_cannot_be_sent_names_its_field(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    VendorAccount account = account_of(arena);
    VendorMail push = case_push(STR("../../3/device/" TOKEN));
    case_refused(
        &apns_api, &push, &account, ERROR_PERMANENT,
        "the push's 'to' is not a device token: 64 to 200 hexadecimal digits");
    push = case_push(STR(TOKEN));
    char *much = arena_alloc(arena, 4000);
    memset(much, '"', 4000); // within the bound, and beyond it as JSON
    push.text = str_of(much, 4000);
    case_refused(
        &apns_api, &push, &account, ERROR_PERMANENT,
        "the push's payload has 8115 bytes, and apns takes at most 4096");
    account.setting_count = 1;
    push = case_push(STR(TOKEN));
    case_refused(
        &apns_api, &push, &account, ERROR_CONFIG,
        "the credential 'main' of apns needs the setting 'topic'");
    arena_free(arena);
}

static void the_provider_token_is_signed_and_the_same_for_40_minutes(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    VendorAccount account = account_of(arena);
    VendorBearer bearer;
    Error err = {0};
    Str parts[3];
    int64_t bucket_s = INT64_C(1795723200) / 2400 * 2400;
    int64_t late_us = (bucket_s + 2399) * 1000000;
    assert_true(apns_sign(&account, STR_EMPTY, late_us, arena, &bearer, &err));
    case_split(bearer.text, arena, parts);
    assert_string_equal(arena_cstr(arena, parts[0]), "{\"alg\":\"ES256\",\"kid\":\"ABC123DEFG\"}");
    assert_string_equal(
        arena_cstr(arena, parts[1]),
        arena_printf(arena, "{\"iss\":\"DEF123GHIJ\",\"iat\":%lld}", (long long)bucket_s));
    EVP_PKEY *key = jwt_key(JWT_ES256, account.secret, &err);
    assert_true(case_is_signed_es256(bearer.text, key, arena));
    EVP_PKEY_free(key);
    assert_int_equal(bearer.refresh_us, (bucket_s + 2400) * 1000000);
    assert_true(bearer.expires_us < (bucket_s + 3600) * 1000000);
    account.secret = STR("no key");
    assert_false(apns_sign(&account, STR_EMPTY, late_us, arena, &bearer, &err));
    assert_int_equal(err.kind, ERROR_CONFIG);
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_push_is_this_to_the_byte),
        cmocka_unit_test(data_alone_goes_in_the_background),
        cmocka_unit_test(an_attempt_has_an_id_of_its_own),
        cmocka_unit_test(what_cannot_be_sent_names_its_field),
        cmocka_unit_test(the_provider_token_is_signed_and_the_same_for_40_minutes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
