// SPDX-License-Identifier: Apache-2.0
#include "common/base/buf.h"
#include "common/vendor/fcm/fcm.h"
#include "tests/unit/common/vendor/push/push_case.h"

#define TOKEN "bk3RNwTe3H0:CI2k_HHwgIpoDKCIZvvDMExUdFQ3P1"

// The file that Google hands out, with the key of RFC 7520.
static Str service_account(Arena *arena)
{
    Str pem = case_file("rfc7520_rs256.pem", arena);
    Buf text;
    buf_init(&text, CASE_TEXT_MAX);
    buf_cstr(
        &text,
        "{\"type\":\"service_account\",\"project_id\":\"acme-1\",\"private_key_id\":\"k1\",");
    buf_cstr(&text, "\"client_email\":\"push@acme-1.iam.gserviceaccount.com\",");
    buf_cstr(&text, "\"token_uri\":\"https://oauth2.googleapis.com/token\",\"private_key\":");
    buf_json(&text, pem);
    buf_char(&text, '}');
    Str copy = arena_str(arena, buf_view(&text));
    buf_done(&text);
    return copy;
}

static VendorAccount account_of(Arena *arena)
{
    return (VendorAccount){
        .name = STR("main"), .secret = service_account(arena), .bearer = STR("ya29.a0")};
}

static void a_push_is_this_to_the_byte(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    VendorAccount account = account_of(arena);
    VendorMail push = case_push(STR(TOKEN));
    VendorRequest request;
    case_build(&fcm_api, &push, &account, arena, &request);
    case_request_is(
        &request, arena, "POST", "https://fcm.googleapis.com/v1/projects/acme-1/messages:send",
        "Authorization: Bearer ya29.a0\nContent-Type: application/json\n",
        "{\"message\":{\"token\":\"" TOKEN "\","
        "\"notification\":{\"title\":\"Your order\",\"body\":\"It is \\\"there\\\" \xe2\x98\x83\"},"
        "\"data\":{\"order\":\"17\",\"link\":\"/o/17\",\"nid\":\"" CASE_NID "\"},"
        "\"android\":{\"priority\":\"HIGH\",\"ttl\":\"600s\",\"notification\":{\"tag\":\"" CASE_NID
        "\"}},"
        "\"apns\":{\"headers\":{\"apns-collapse-id\":\"" CASE_NID
        "\",\"apns-expiration\":\"1795723800\"}},"
        "\"webpush\":{\"headers\":{\"Topic\":\"" CASE_NID
        "\",\"TTL\":\"600\",\"Urgency\":\"high\"},"
        "\"notification\":{\"tag\":\"" CASE_NID "\"}}}}");
    arena_free(arena);
}

static void data_alone_shows_nothing(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    VendorAccount account = account_of(arena);
    VendorMail push = case_push(STR(TOKEN));
    VendorRequest request;
    push.subject = push.text = STR_EMPTY;
    push.urgent = false;
    push.expires_at_us = 0;
    push.data = STR("{\"a\":{\"b\":[1,true]},\"c\":null}");
    case_build(&fcm_api, &push, &account, arena, &request);
    assert_string_equal(
        arena_cstr(arena, request.body),
        "{\"message\":{\"token\":\"" TOKEN "\","
        "\"data\":{\"a\":\"{\\\"b\\\":[1,true]}\",\"c\":\"null\",\"nid\":\"" CASE_NID "\"},"
        "\"android\":{\"priority\":\"NORMAL\",\"ttl\":\"2419200s\"},"
        "\"apns\":{\"headers\":{\"apns-collapse-id\":\"" CASE_NID "\"}},"
        "\"webpush\":{\"headers\":{\"Topic\":\"" CASE_NID
        "\",\"TTL\":\"2419200\",\"Urgency\":\"normal\"}}}}");
    arena_free(arena);
}

static void what_cannot_be_sent_names_its_field(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    VendorAccount account = account_of(arena);
    VendorMail push = case_push(STR("a token"));
    case_refused(
        &fcm_api, &push, &account, ERROR_PERMANENT,
        "the push's 'to' is not a registration token: 1 to 4096 printable characters");
    push = case_push(STR(TOKEN));
    push.data = STR("[1]");
    case_refused(
        &fcm_api, &push, &account, ERROR_PERMANENT, "the push's 'data' is not a JSON object");
    push.data = STR("{\"google.x\":1}");
    case_refused(
        &fcm_api, &push, &account, ERROR_PERMANENT,
        "the push's 'data' has 'google.x', a name that fcm keeps for itself");
    push.subject = push.text = push.data = STR_EMPTY;
    case_refused(
        &fcm_api, &push, &account, ERROR_PERMANENT,
        "the push has neither 'title', 'body' nor 'data', and needs one");
    push.text = str_of(arena_zalloc(arena, 5000), 5000);
    case_refused(
        &fcm_api, &push, &account, ERROR_PERMANENT,
        "the push's 'title', 'body' and 'data' have 5000 bytes, and fcm takes at most 4096");
    arena_free(arena);
}

static void an_account_that_is_none_is_config_and_is_not_shown(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    VendorAccount account = account_of(arena);
    VendorMail push = case_push(STR(TOKEN));
    account.bearer = STR_EMPTY;
    case_refused(
        &fcm_api, &push, &account, ERROR_TRANSIENT,
        "the credential 'main' of fcm has no token yet");
    account.bearer = STR("x");
    account.secret = STR("my-secret");
    case_refused(
        &fcm_api, &push, &account, ERROR_CONFIG,
        "the secret is no service account: it is not JSON");
    account.secret = STR("{\"project_id\":\"a\",\"client_email\":\"b\",\"private_key_id\":\"c\"}");
    case_refused(
        &fcm_api, &push, &account, ERROR_CONFIG,
        "the secret is no service account: it has no 'private_key'");
    arena_free(arena);
}

// ---- the access token ----

static void the_grant_is_signed_by_the_accounts_key(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    VendorAccount account = account_of(arena);
    VendorRequest request;
    Error err = {0};
    assert_true(fcm_grant(&account, CASE_READ_US, arena, &request, &err));
    Str kind = STR("grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=");
    assert_true(str_starts(request.body, kind));
    assert_true(str_eq(request.url, STR("https://oauth2.googleapis.com/token")));
    assert_string_equal(
        case_headers(&request, arena), "Content-Type: application/x-www-form-urlencoded\n");
    Str token = str_slice(request.body, kind.len, request.body.len), parts[3], again;
    case_split(token, arena, parts);
    assert_string_equal(
        arena_cstr(arena, parts[0]), "{\"alg\":\"RS256\",\"typ\":\"JWT\",\"kid\":\"k1\"}");
    assert_string_equal(
        arena_cstr(arena, parts[1]),
        "{\"iss\":\"push@acme-1.iam.gserviceaccount.com\","
        "\"scope\":\"https://www.googleapis.com/auth/firebase.messaging\","
        "\"aud\":\"https://oauth2.googleapis.com/token\",\"iat\":1795723200,\"exp\":1795726800}");
    EVP_PKEY *key = jwt_key(JWT_RS256, case_file("rfc7520_rs256.pem", arena), &err);
    assert_true(jwt_sign(JWT_RS256, key, parts[0], parts[1], arena, &again, &err));
    assert_true(str_eq(token, again)); // RS256 signs the same bytes in the same way
    EVP_PKEY_free(key);
    arena_free(arena);
}

static bool granted(int status, const char *body, VendorBearer *ret, Error *err, Arena *arena)
{
    const VendorPair none = {STR_EMPTY, STR_EMPTY};
    VendorAnswer answer = case_answer(status, &none, body);
    return fcm_granted(&answer, arena, ret, err);
}

static void a_token_is_renewed_at_four_fifths_of_its_life(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    VendorBearer bearer;
    Error err = {0};
    const char *body =
        "{\"access_token\":\"ya29.c\",\"expires_in\":3599,\"token_type\":\"Bearer\"}";
    assert_true(granted(200, body, &bearer, &err, arena));
    assert_true(str_eq(bearer.text, STR("ya29.c")));
    assert_int_equal(bearer.refresh_us, CASE_READ_US + INT64_C(2879200000));
    assert_int_equal(bearer.expires_us, CASE_READ_US + INT64_C(3569000000));
    arena_free(arena);
}

static void an_answer_without_a_token_says_whose_fault_it_is(void **state)
{
    (void)state;
    static const struct {
        int status;
        const char *body;
        ErrorKind kind;
        const char *text;
    } rows[] = {
        {400, "{\"error\":\"invalid_grant\",\"error_description\":\"Invalid JWT Signature.\"}",
         ERROR_CONFIG, "no access token: 400 invalid_grant Invalid JWT Signature."},
        {401, "{\"error\":\"invalid_client\"}", ERROR_CONFIG,
         "no access token: 401 invalid_client"},
        {503, "", ERROR_TRANSIENT, "no access token: 503 "},
        {200, "{}", ERROR_TRANSIENT, "no access token in the answer"},
        {200, "{\"access_token\":\"x\",\"expires_in\":1}", ERROR_TRANSIENT,
         "no access token in the answer"},
        {200, "{\"access_token\":\"x\\ny\",\"expires_in\":3600}", ERROR_TRANSIENT,
         "no access token in the answer"},
    };
    Arena *arena = arena_new(0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        VendorBearer bearer;
        Error err = {0};
        assert_false(granted(rows[i].status, rows[i].body, &bearer, &err, arena));
        assert_int_equal(err.kind, rows[i].kind);
        assert_string_equal(err.text, rows[i].text);
    }
    arena_free(arena);
}

static void the_test_call_sends_nothing(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    VendorAccount account = account_of(arena);
    VendorRequest request;
    Error err = {0};
    assert_true(fcm_test(&account, CASE_READ_US, arena, &request, &err));
    assert_string_equal(
        arena_cstr(arena, request.body),
        "{\"validate_only\":true,\"message\":{\"topic\":\"stentor-test\"}}");
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_push_is_this_to_the_byte),
        cmocka_unit_test(data_alone_shows_nothing),
        cmocka_unit_test(what_cannot_be_sent_names_its_field),
        cmocka_unit_test(an_account_that_is_none_is_config_and_is_not_shown),
        cmocka_unit_test(the_grant_is_signed_by_the_accounts_key),
        cmocka_unit_test(a_token_is_renewed_at_four_fifths_of_its_life),
        cmocka_unit_test(an_answer_without_a_token_says_whose_fault_it_is),
        cmocka_unit_test(the_test_call_sends_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
