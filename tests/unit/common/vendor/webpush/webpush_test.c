// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/webpush/webpush.h"
#include "tests/unit/common/vendor/push/push_case.h"

// RFC 8291, section 5 and appendix A.
#define PLAIN "When I grow up, I want to be a watermelon"
#define AUTH "BTBZMqHH6r4Tts7J_aSIgg"
#define UA_PUBLIC                                                                                  \
    "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
#define AS_PRIVATE "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"
#define SALT "DGv6ra1nlYgDCS1FRnbzlw"
#define BODY                                                                                       \
    "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS" \
    "6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qu" \
    "lcy4a-fN"

#define SUBSCRIPTION(endpoint)                                                                     \
    "{\"endpoint\":\"" endpoint "\",\"expirationTime\":null,\"keys\":{\"p256dh\":\"" UA_PUBLIC     \
    "\",\"auth\":\"" AUTH "\"}}"
#define PLACE "https://updates.push.services.mozilla.com/wpush/v2/gAAAAABi"

static const VendorPair settings[] = {
    {{"subject", 7}, {"mailto:push@example.com", 23}},
    {{"hosts", 5}, {"push.example.net, *.example.org", 31}}};

static VendorAccount account_of(Str secret)
{
    return (VendorAccount){
        .name = STR("main"),
        .secret = secret,
        .bearer = STR("t=a.b.c, k=d"),
        .settings = settings,
        .setting_count = 2};
}

static void a_body_is_rfc_8291s_to_the_byte(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    VendorAccount account = account_of(STR(AS_PRIVATE));
    WebPushTarget target;
    Error err = {0};
    Str body;
    assert_true(webpush_target(&account, STR(SUBSCRIPTION(PLACE)), arena, &target, &err));
    EVP_PKEY *own = p256_private((const uint8_t *)case_decode(STR(AS_PRIVATE), arena).ptr);
    const uint8_t *salt = (const uint8_t *)case_decode(STR(SALT), arena).ptr;
    assert_true(webpush_encrypt(&target, own, salt, STR(PLAIN), arena, &body, &err));
    assert_int_equal(body.len, 144);
    char text[256];
    base64url_encode(body.ptr, body.len, text);
    assert_string_equal(text, BODY);
    EVP_PKEY_free(own);
    arena_free(arena);
}

// RFC 8292, section 2.4.
static void the_example_of_vapid_is_signed_by_its_key(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    Str point = case_decode(
        STR("BA1Hxzyi1RUM1b5wjxsn7nGxAszw2u61m164i3MrAIxHF6YK5h4SDYic-dRuU_RCPCfA5aq9ojSwk5Y2EmClB"
            "Ps"),
        arena);
    EVP_PKEY *key = p256_public((const uint8_t *)point.ptr);
    assert_non_null(key);
    assert_true(case_is_signed_es256(
        STR("eyJ0eXAiOiJKV1QiLCJhbGciOiJFUzI1NiJ9.eyJhdWQiOiJodHRwczovL3B1c2guZXhhbXBsZS5uZXQiLCJl"
            "eHAiOjE0NTM1MjM3NjgsInN1YiI6Im1haWx0bzpwdXNoQGV4YW1wbGUuY29tIn0.i3CYb7t4xfxCDquptFOep"
            "C9GAu_HLGkMlMuCGSK2rpiUfnK9ojFwDXb1JrErtmysazNjjvW2L9OkSSHzvoD1oA"),
        key, arena));
    EVP_PKEY_free(key);
    arena_free(arena);
}

static void check_bearer(Str secret, Arena *arena)
{
    VendorAccount account = account_of(secret);
    VendorBearer bearer;
    Error err = {0};
    Str parts[3], text;
    assert_true(webpush_sign(
        &account, STR("https://push.example.net"), CASE_READ_US, arena, &bearer, &err));
    ptrdiff_t comma = str_find(bearer.text, ',');
    text = str_slice(bearer.text, 2, (size_t)comma);
    Str point = str_slice(bearer.text, (size_t)comma + 4, bearer.text.len);
    assert_true(str_starts(bearer.text, STR("t=")) && point.len == 87);
    case_split(text, arena, parts);
    assert_string_equal(arena_cstr(arena, parts[0]), "{\"typ\":\"JWT\",\"alg\":\"ES256\"}");
    assert_string_equal(
        arena_cstr(arena, parts[1]), "{\"aud\":\"https://push.example.net\",\"exp\":1795766400,"
                                     "\"sub\":\"mailto:push@example.com\"}");
    EVP_PKEY *key = p256_public((const uint8_t *)case_decode(point, arena).ptr);
    assert_true(case_is_signed_es256(text, key, arena));
    EVP_PKEY_free(key);
    assert_true(bearer.refresh_us < bearer.expires_us);
    assert_true(bearer.expires_us < INT64_C(1795766400) * 1000000);
}

static void a_bearer_is_for_one_origin_and_half_a_day(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    check_bearer(STR(AS_PRIVATE "\n"), arena);
    check_bearer(case_file("rfc7515_es256.pem", arena), arena);
    VendorMail push = case_push(STR(SUBSCRIPTION("https://push.example.net:8443/a?b")));
    assert_string_equal(
        arena_cstr(arena, webpush_audience(&push, arena)), "https://push.example.net:8443");
    push.to.address = STR("no subscription");
    assert_int_equal(webpush_audience(&push, arena).len, 0);
    arena_free(arena);
}

static void a_key_or_subject_that_is_none_is_config(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    VendorBearer bearer;
    Error err = {0};
    VendorAccount account = account_of(STR("my-secret"));
    assert_false(webpush_sign(&account, STR("https://a"), 0, arena, &bearer, &err));
    assert_int_equal(err.kind, ERROR_CONFIG);
    assert_null(strstr(err.text, "my-secret"));
    const VendorPair wrong = {STR("subject"), STR("push@example.com")};
    account = account_of(STR(AS_PRIVATE));
    account.settings = &wrong;
    account.setting_count = 1;
    assert_false(webpush_sign(&account, STR("https://a"), 0, arena, &bearer, &err));
    assert_string_equal(
        err.text,
        "the setting 'subject' of the credential 'main' must begin with mailto: or https://");
    arena_free(arena);
}

static void a_request_has_ttl_topic_and_a_body_of_its_own(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    VendorAccount account = account_of(STR(AS_PRIVATE));
    VendorMail push = case_push(STR(SUBSCRIPTION(PLACE)));
    VendorRequest request, again;
    case_build(&webpush_api, &push, &account, arena, &request);
    case_build(&webpush_api, &push, &account, arena, &again);
    assert_string_equal(arena_cstr(arena, request.url), PLACE);
    assert_string_equal(
        case_headers(&request, arena),
        "Authorization: vapid t=a.b.c, k=d\nTTL: 600\nUrgency: high\nTopic: " CASE_NID "\n"
        "Content-Encoding: aes128gcm\nContent-Type: application/octet-stream\n");
    size_t plain = strlen("{\"title\":\"Your order\",\"body\":\"It is \\\"there\\\" \xe2\x98\x83\","
                          "\"tag\":\"" CASE_NID "\",\"nid\":\"" CASE_NID "\","
                          "\"data\":{\"order\":17,\"link\":\"/o/17\"}}");
    assert_int_equal(request.body.len, 86 + plain + 1 + 16);
    assert_int_equal(again.body.len, request.body.len);
    assert_memory_not_equal(request.body.ptr, again.body.ptr, 16);           // the salt
    assert_memory_not_equal(request.body.ptr + 21, again.body.ptr + 21, 65); // the key
    arena_free(arena);
}

static void a_subscription_leads_to_push_services_only(void **state)
{
    (void)state;
    static const struct {
        const char *endpoint;
        bool good;
    } rows[] = {
        {"https://fcm.googleapis.com/fcm/send/x", true},
        {"https://web.push.apple.com/x", true},
        {"https://db5p.notify.windows.com/w/?token=x", true},
        {"https://web.push.apple.com:443/x", true},
        {"https://push.example.net:8443/x", true},
        {"https://fcm.googleapis.com:8443/x", false}, // no service, and calls that fail
        {"https://a.b.example.org/x", true},
        {"https://example.org/x", false},
        {"https://push.apple.com/x", false},
        {"https://fcm.googleapis.com.evil.example/x", false},
        {"https://evil.example/fcm.googleapis.com", false},
        {"https://fcm.googleapis.com@evil.example/x", false},
        {"https://evilexample.org/x", false},
        {"https://[::1]/x", false},
        {"https://169.254.169.254/x", false},
        {"https://localhost/x", false},
        {"http://fcm.googleapis.com/x", false},
        {"https:///x", false},
        {"https://fcm.googleapis.com/ x", false},
        {"", false},
    };
    Arena *arena = arena_new(0);
    VendorAccount account = account_of(STR(AS_PRIVATE));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        WebPushTarget target;
        Error err = {0};
        const char *text = arena_printf(
            arena,
            "{\"endpoint\":\"%s\",\"keys\":{\"p256dh\":\"" UA_PUBLIC "\",\"auth\":\"" AUTH "\"}}",
            rows[i].endpoint);
        bool good = webpush_target(&account, str_from(text), arena, &target, &err);
        if (good != rows[i].good || (!good && err.kind != ERROR_PERMANENT)) {
            fail_msg("%s: %s", rows[i].endpoint, err.text);
        }
    }
    arena_free(arena);
}

static void what_cannot_be_sent_names_its_field(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    VendorAccount account = account_of(STR(AS_PRIVATE));
    VendorMail push = case_push(STR("a token"));
    case_refused(
        &webpush_api, &push, &account, ERROR_PERMANENT,
        "the push's 'to' is not a subscription: {\"endpoint\", \"keys\": {\"p256dh\", \"auth\"}}");
    push = case_push(STR("{\"endpoint\":\"" PLACE "\"}"));
    case_refused(
        &webpush_api, &push, &account, ERROR_PERMANENT,
        "the push's 'to' has no 'keys.auth' of 16 bytes");
    push = case_push(
        STR("{\"endpoint\":\"" PLACE "\",\"keys\":{\"auth\":\"" AUTH "\",\"p256dh\":\"BCVx\"}}"));
    case_refused(
        &webpush_api, &push, &account, ERROR_PERMANENT,
        "the push's 'to' has no 'keys.p256dh' of P-256");
    push = case_push(STR(SUBSCRIPTION(PLACE)));
    char *much = arena_alloc(arena, 2600);
    memset(much, 'x', 2600);
    push.text = str_of(much, 2600);
    push.data = STR_EMPTY;
    case_refused(
        &webpush_api, &push, &account, ERROR_PERMANENT,
        "the push has 2710 bytes, and webpush takes at most 2640");
    arena_free(arena);
}

// clang-format off
static const CaseRow rows[] = {
    {"gone", 410, NULL, NULL, "{\"code\":410,\"errno\":106,\"error\":\"Gone\",\"message\":\"No such subscription\"}", SEND_ANSWERED, REPLY_BAD_ADDRESS, 0, "106 No such subscription"},
    {"not found", 404, NULL, NULL, "{\"code\":404,\"errno\":102,\"message\":\"m\"}", SEND_ANSWERED, REPLY_BAD_ADDRESS, 0, "102 m"},
    {"410 alone", 410, NULL, NULL, "", SEND_ANSWERED, REPLY_BAD_ADDRESS, 0, ""},
    {"bad TTL", 400, NULL, NULL, "{\"errno\":112,\"message\":\"m\"}", SEND_ANSWERED, REPLY_TERMINAL, 0, "112 m"},
    {"VAPID", 401, NULL, NULL, "{\"errno\":109,\"message\":\"m\"}", SEND_ANSWERED, REPLY_CONFIG, 0, "109 m"},
    {"another's key", 403, NULL, NULL, "", SEND_ANSWERED, REPLY_CONFIG, 0, ""},
    {"too large", 413, NULL, NULL, "{\"errno\":104,\"message\":\"m\"}", SEND_ANSWERED, REPLY_TERMINAL, 0, "104 m"},
    {"429", 429, NULL, NULL, "", SEND_ANSWERED, REPLY_THROTTLED, 60000, ""},
    {"429, retry-after", 429, "Retry-After", "5", "", SEND_ANSWERED, REPLY_THROTTLED, 5000, ""},
    {"busy", 503, NULL, NULL, "{\"errno\":201,\"message\":\"m\"}", SEND_ANSWERED, REPLY_RETRY, 10000, "201 m"},
    {"at once", 503, NULL, NULL, "{\"errno\":202,\"message\":\"m\"}", SEND_ANSWERED, REPLY_RETRY, 0, "202 m"},
    {"500", 500, NULL, NULL, "", SEND_UNKNOWN, REPLY_RETRY, 0, ""},
    {"502", 502, NULL, NULL, "{\"errno\":902,\"message\":\"m\"}", SEND_UNKNOWN, REPLY_RETRY, 0, "902 m"},
};
// clang-format on

static void every_row_of_the_class_table_holds(void **state)
{
    (void)state;
    case_rows(&webpush_api, rows, sizeof rows / sizeof *rows);
    case_accepted(
        &webpush_api, 201, "Location", "https://push.example.net/m/1", "",
        "https://push.example.net/m/1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_body_is_rfc_8291s_to_the_byte),
        cmocka_unit_test(the_example_of_vapid_is_signed_by_its_key),
        cmocka_unit_test(a_bearer_is_for_one_origin_and_half_a_day),
        cmocka_unit_test(a_key_or_subject_that_is_none_is_config),
        cmocka_unit_test(a_request_has_ttl_topic_and_a_body_of_its_own),
        cmocka_unit_test(a_subscription_leads_to_push_services_only),
        cmocka_unit_test(what_cannot_be_sent_names_its_field),
        cmocka_unit_test(every_row_of_the_class_table_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
