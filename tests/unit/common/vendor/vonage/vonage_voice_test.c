// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/vonage/vonage_voice.h"

#include <openssl/pem.h>

#include "tests/unit/common/vendor/jwt_case.h"
#include "tests/unit/common/vendor/phone_case.h"

static EVP_PKEY *key;
static char pem[4096];

static const VendorPair SETTINGS[] = {{{"from", 4}, {"+447700900001", 13}}};

static VendorAccount account(void)
{
    return (VendorAccount){
        .name = STR("main"),
        .id = STR("aaaaaaaa-bbbb-cccc-dddd-0123456789ab"),
        .secret = str_from(pem),
        .settings = SETTINGS,
        .setting_count = 1};
}

static int make_key(void **state)
{
    (void)state;
    key = EVP_RSA_gen(2048);
    BIO *out = BIO_new(BIO_s_mem());
    int written = PEM_write_bio_PrivateKey(out, key, NULL, NULL, 0, NULL, NULL);
    int read = BIO_read(out, pem, sizeof pem - 1);
    BIO_free(out);
    return written == 1 && read > 0 ? 0 : -1;
}

static int free_key(void **state)
{
    (void)state;
    EVP_PKEY_free(key);
    return 0;
}

// Signed by the key; its parts decoded.
static void token_of(const VendorRequest *request, Arena *arena, Str ret[3])
{
    Str value = request->headers[0].value;
    assert_true(str_starts(value, STR("Bearer ")));
    Str token = str_slice(value, 7, value.len);
    case_split(token, arena, ret);
    ptrdiff_t dot = str_find(str_slice(token, (size_t)str_find(token, '.') + 1, token.len), '.');
    size_t text_len = (size_t)str_find(token, '.') + 1 + (size_t)dot;
    EVP_MD_CTX *digest = EVP_MD_CTX_new();
    assert_int_equal(EVP_DigestVerifyInit(digest, NULL, EVP_sha256(), NULL, key), 1);
    assert_int_equal(
        EVP_DigestVerify(
            digest, (const uint8_t *)ret[2].ptr, ret[2].len, (const uint8_t *)token.ptr, text_len),
        1);
    EVP_MD_CTX_free(digest);
}

static void a_call_is_json_with_its_script(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    VendorAccount main = account();
    VendorMail mail = case_text("<b>4711</b>");
    mail.locale = STR("de");
    VendorRequest request;
    case_build(&vonage_voice_api, &mail, &main, arena, &request);
    assert_string_equal(arena_cstr(arena, request.url), "https://api.nexmo.com/v1/calls");
    assert_string_equal(
        arena_cstr(arena, request.body),
        "{\"to\":[{\"type\":\"phone\",\"number\":\"4915112345678\"}],"
        "\"from\":{\"type\":\"phone\",\"number\":\"447700900001\"},"
        "\"ncco\":[{\"action\":\"talk\",\"text\":\"<speak>&lt;b&gt;4711&lt;/b&gt;</speak>\","
        "\"language\":\"de-DE\"}],"
        "\"event_url\":[\"https://hooks.example.com/v1/inbound/acme/x/cap?attempt=tok\"],"
        "\"machine_detection\":\"continue\",\"ringing_timer\":30}");
    arena_free(arena);
}

static void each_request_has_a_token_of_its_own(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    VendorAccount main = account();
    VendorMail mail = case_text("Hello");
    VendorRequest request;
    Str parts[3];
    case_build(&vonage_voice_api, &mail, &main, arena, &request);
    token_of(&request, arena, parts);
    assert_string_equal(arena_cstr(arena, parts[0]), "{\"alg\":\"RS256\",\"typ\":\"JWT\"}");
    const char *claims = arena_cstr(arena, parts[1]);
    const char *begin = "{\"application_id\":\"aaaaaaaa-bbbb-cccc-dddd-0123456789ab\","
                        "\"iat\":1795723200,\"exp\":1795723500,\"jti\":\"";
    assert_memory_equal(claims, begin, strlen(begin));
    assert_int_equal(strlen(claims), strlen(begin) + 36 + 2);
    mail.key = STR(CASE_NID "-3");
    case_build(&vonage_voice_api, &mail, &main, arena, &request);
    token_of(&request, arena, parts);
    assert_string_not_equal(claims, arena_cstr(arena, parts[1]));
    arena_free(arena);
}

static void a_key_that_is_none_is_named(void **state)
{
    (void)state;
    VendorMail mail = case_text("Hello");
    VendorAccount other = account();
    other.secret = STR("secret");
    case_refused(
        &vonage_voice_api, &mail, &other, ERROR_CONFIG,
        "the secret has no private key (PEM, RSA of at least 2,048 bits, without a password)");
    other = account();
    other.id = STR("a\"b");
    case_refused(
        &vonage_voice_api, &mail, &other, ERROR_CONFIG,
        "the id of the credential 'main' of vonage_voice is not an application's id");
    other = account();
    other.setting_count = 0;
    case_refused(
        &vonage_voice_api, &mail, &other, ERROR_CONFIG,
        "the credential 'main' of vonage_voice needs the setting 'from'");
}

static void a_script_is_at_most_1500_characters(void **state)
{
    (void)state;
    char text[VONAGE_SCRIPT_MAX + 2];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    VendorMail mail = case_text(text);
    VendorAccount main = account();
    case_refused(
        &vonage_voice_api, &mail, &main, ERROR_PERMANENT,
        "the message's 'text' has 1501 characters (an emoji counts two), and vonage_voice takes at "
        "most 1500");
}

#define ABOUT(name)                                                                                \
    "{\"title\":\"Bad Request\",\"invalid_parameters\":[{\"name\":\"" name                         \
    "\",\"reason\":\"why\"}]}"

// clang-format off
static const CaseRow ROWS[] = {
    {"to",         400, NULL, NULL, ABOUT("to[0].number"), SEND_ANSWERED, REPLY_BAD_ADDRESS, 0, "why"},
    {"from",       400, NULL, NULL, ABOUT("from.number"),  SEND_ANSWERED, REPLY_CONFIG,      0, "why"},
    {"other",      400, NULL, NULL, ABOUT("ncco"),         SEND_ANSWERED, REPLY_TERMINAL,    0, "why"},
    {"title",      400, NULL, NULL, "{\"title\":\"t\"}",   SEND_ANSWERED, REPLY_TERMINAL,    0, "t"},
    {"detail",     403, NULL, NULL, "{\"title\":\"t\",\"detail\":\"d\"}", SEND_ANSWERED, REPLY_CONFIG, 0, "d"},
    {"credential", 401, NULL, NULL, "x",                   SEND_ANSWERED, REPLY_CONFIG,      0, ""},
    {"too fast",   429, "Retry-After", "1", "{}",          SEND_ANSWERED, REPLY_THROTTLED,   1000, ""},
    {"busy",       503, NULL, NULL, "{}",                  SEND_ANSWERED, REPLY_RETRY,       0, ""},
    {"uncertain",  500, NULL, NULL, ABOUT("to"),           SEND_UNKNOWN,  REPLY_RETRY,       0, "why"},
};
// clang-format on

static void each_answer_has_its_class(void **state)
{
    (void)state;
    case_rows(&vonage_voice_api, ROWS, sizeof ROWS / sizeof *ROWS);
    case_accepted(
        &vonage_voice_api, 201, "", "", "{\"uuid\":\"63f61863\",\"status\":\"started\"}",
        "63f61863");
}

static void a_credential_is_tested_without_a_call(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    VendorAccount main = account();
    VendorRequest request;
    Error err = {0};
    Str parts[3];
    assert_true(vonage_voice_api.test(&main, CASE_READ_US, arena, &request, &err));
    assert_string_equal(request.method, "GET");
    assert_string_equal(
        arena_cstr(arena, request.url), "https://api.nexmo.com/v1/calls?page_size=1");
    token_of(&request, arena, parts);
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_is_json_with_its_script),
        cmocka_unit_test(each_request_has_a_token_of_its_own),
        cmocka_unit_test(a_key_that_is_none_is_named),
        cmocka_unit_test(a_script_is_at_most_1500_characters),
        cmocka_unit_test(each_answer_has_its_class),
        cmocka_unit_test(a_credential_is_tested_without_a_call),
    };
    return cmocka_run_group_tests(tests, make_key, free_key);
}
