// SPDX-License-Identifier: Apache-2.0
// Requests against docs.aws.amazon.com/ses/latest/APIReference-V2, SendEmail and GetAccount. The
// signatures were computed by Python's hashlib and hmac alone, after "Create a signed AWS API
// request":
//   canonical = "\n".join([method, path, "", "".join(f"{k}:{h[k]}\n" for k in sorted(h)),
//                          ";".join(sorted(h)), sha256(body).hexdigest()])
//   to_sign = "\n".join(["AWS4-HMAC-SHA256", stamp, scope, sha256(canonical).hexdigest()])
//   key = b"AWS4" + secret; for part in scope.split("/"): key = hmac(key, part)
//   hmac(key, to_sign).hexdigest()
#include "common/vendor/ses/ses.h"
#include "tests/unit/common/vendor/vendor_case.h"

#define SCOPE "AKIDEXAMPLE/20261126/eu-central-1/ses/aws4_request"
#define SECRET_KEY "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
#define DATA                                                                                       \
    "RnJvbTogU2hvcCA8c2hvcEBleGFtcGxlLmNvbT4NClRvOiBCb2IgPGJvYkBleGFtcGxlLm9yZz4NCk1lc3NhZ2UtSUQ"  \
    "6IDxudGZfMDFNODJYUzg5VkVWNzdWRDhBUzBNQ01IMEJAbWFpbC5leGFtcGxlLmNvbT4NClN1YmplY3Q6IEludm9pY2"  \
    "UgMTcNCg0KMTcgRVVSDQo="

static const VendorPair settings[] = {
    {{"region", 6}, {"eu-central-1", 12}},
    {{"configuration_set", 17}, {"events", 6}},
    {{"bounce_domain", 13}, {"bounce.example.com", 18}}};
static const VendorAccount account = {
    .name = {"main", 4},
    .id = {"AKIDEXAMPLE", 11},
    .secret = {SECRET_KEY, 40},
    .settings = settings,
    .setting_count = 3};

static void a_whole_mail_is_signed(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    const VendorAddress cc = {STR("Ann"), STR("ann@example.org")};
    const VendorAddress bcc = {STR_EMPTY, STR("audit@example.com")};
    VendorMail mail = case_mail();
    mail.cc = &cc;
    mail.cc_count = 1;
    mail.bcc = &bcc;
    mail.bcc_count = 1;
    mail.return_path = STR("b+t0k3n@bounce.example.com");
    VendorRequest request;
    VendorAccount temporary = account;
    temporary.id = STR("AKIDBEFORE"); // the secret's own wins
    temporary.secret = STR("{\n  \"Version\": 1,\n  \"AccessKeyId\": \"AKIDEXAMPLE\",\n"
                           "  \"SecretAccessKey\": \"" SECRET_KEY "\",\n"
                           "  \"SessionToken\": \"TOKEN==\",\n"
                           "  \"Expiration\": \"2026-11-26T21:00:00Z\"\n}");
    case_build(&ses_api, &mail, &temporary, arena, &request);
    case_request_is(
        &request, arena, "POST",
        "https://email.eu-central-1.amazonaws.com/v2/email/outbound-emails",
        "Content-Type: application/json\nX-Amz-Security-Token: TOKEN==\n"
        "X-Amz-Date: 20261126T200000Z\n"
        "Authorization: AWS4-HMAC-SHA256 Credential=" SCOPE
        ", SignedHeaders=content-type;host;x-amz-date;x-amz-security-token, "
        "Signature=a1b57f4dec0372214c0136ce4de6003c6406dd8c1950a869d90fff16f6a1eb1f\n",
        "{\"FromEmailAddress\":\"shop@example.com\",\"Destination\":{\"ToAddresses\":["
        "\"bob@example.org\"],\"CcAddresses\":[\"ann@example.org\"],\"BccAddresses\":["
        "\"audit@example.com\"]},"
        "\"FeedbackForwardingEmailAddress\":\"b+t0k3n@bounce.example.com\","
        "\"Content\":{\"Raw\":{\"Data\":\"" DATA "\"}},\"EmailTags\":[{\"Name\":\"nid\","
        "\"Value\":\"" CASE_NID "\"},{\"Name\":\"attempt\",\"Value\":\"2\"}],"
        "\"ConfigurationSetName\":\"events\"}");
    arena_free(arena);
}

static void what_is_not_set_is_left_out(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    VendorAccount bare = account;
    bare.setting_count = 1;
    VendorMail mail = case_mail();
    mail.return_path = STR("b+t0k3n@bounce.example.com"); // of no domain that SES knows
    VendorRequest request;
    case_build(&ses_api, &mail, &bare, arena, &request);
    assert_string_equal(
        arena_cstr(arena, request.body),
        "{\"FromEmailAddress\":\"shop@example.com\",\"Destination\":{\"ToAddresses\":["
        "\"bob@example.org\"]},\"Content\":{\"Raw\":{\"Data\":\"" DATA
        "\"}},\"EmailTags\":[{\"Name\":\"nid\",\"Value\":\"" CASE_NID
        "\"},{\"Name\":\"attempt\",\"Value\":\"2\"}]}");
    arena_free(arena);
}

static void the_credential_is_tested_by_get_account(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    const VendorPair local[] = {settings[0], {STR("base_url"), STR("http://127.0.0.1:9000")}};
    VendorAccount here = account;
    here.settings = local;
    here.setting_count = 2;
    VendorRequest request;
    Error err = {0};
    assert_true(ses_api.test(&here, CASE_READ_US, arena, &request, &err));
    case_request_is(
        &request, arena, "GET", "http://127.0.0.1:9000/v2/email/account",
        "X-Amz-Date: 20261126T200000Z\nAuthorization: AWS4-HMAC-SHA256 Credential=" SCOPE
        ", SignedHeaders=host;x-amz-date, "
        "Signature=4af9a80c89c0d469168ce29d2f9806a9851a2549529e57956c0f4d44d8f32268\n",
        "");
    arena_free(arena);
}

static void the_usual_port_is_not_signed(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    VendorPair urls[] = {settings[0], {STR("base_url"), STR("https://email.example.com:443")}};
    VendorAccount here = account;
    here.settings = urls;
    here.setting_count = 2;
    VendorRequest with_port, without;
    Error err = {0};
    assert_true(ses_api.test(&here, CASE_READ_US, arena, &with_port, &err));
    urls[1].value = STR("https://email.example.com");
    assert_true(ses_api.test(&here, CASE_READ_US, arena, &without, &err));
    assert_string_equal(case_headers(&with_port, arena), case_headers(&without, arena));
    arena_free(arena);
}

static void what_is_missing_is_named(void **state)
{
    (void)state;
    VendorMail mail = case_mail();
    VendorAccount bad = account;
    bad.setting_count = 0;
    case_refused(
        &ses_api, &mail, &bad, ERROR_CONFIG,
        "the credential 'main' of ses needs the setting 'region'");
    bad = account;
    bad.id = STR_EMPTY;
    case_refused(&ses_api, &mail, &bad, ERROR_CONFIG, "the credential 'main' of ses needs an 'id'");
    VendorPair odd[] = {settings[0], {STR("configuration_set"), STR("a\r\nX-Evil: 1")}};
    bad = account;
    bad.settings = odd;
    bad.setting_count = 2;
    case_refused(
        &ses_api, &mail, &bad, ERROR_CONFIG,
        "the setting 'configuration_set' of the credential 'main' is not one line of UTF-8");
    static VendorAddress many[50];
    for (size_t i = 0; i < 50; i++) {
        many[i] = (VendorAddress){STR_EMPTY, STR("a@example.org")};
    }
    mail.bcc = many;
    mail.bcc_count = 50;
    case_refused(
        &ses_api, &mail, &account, ERROR_PERMANENT,
        "the mail has 51 recipients in 'to', 'cc' and 'bcc', and ses takes at most 50");
}

static void a_secret_of_several_values_is_refused_without_being_shown(void **state)
{
    (void)state;
    static const struct {
        const char *secret, *says;
    } rows[] = {
        {"{\"AccessKeyId\": \"A\", \"SessionToken\": \"T0K\"}",
         "the secret of the credential 'main' of ses is a JSON object without a text "
         "'SecretAccessKey'"},
        {"{\"AccessKeyId\": 7, \"SecretAccessKey\": \"S3C\"}",
         "the secret of the credential 'main' of ses is a JSON object without a text "
         "'AccessKeyId'"},
        {"{\"AccessKeyId\": \"A\", \"SecretAccessKey\": \"S3C\", \"SessionToken\": "
         "\"a\\r\\nX-Evil: 1\"}",
         "the secret of the credential 'main' of ses is a JSON object without a text "
         "'SessionToken'"},
        {"{\"AccessKeyId\": \"A\"",
         "the secret of the credential 'main' of ses begins with '{' and is no JSON object of at "
         "most 16384 bytes"},
        {"S3C\nT0K", "the credential 'main' of ses has a line break in its secret"},
    };
    VendorMail mail = case_mail();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        VendorAccount bad = account;
        bad.secret = str_from(rows[i].secret);
        case_refused(&ses_api, &mail, &bad, ERROR_CONFIG, rows[i].says);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_mail_is_signed),
        cmocka_unit_test(what_is_not_set_is_left_out),
        cmocka_unit_test(the_credential_is_tested_by_get_account),
        cmocka_unit_test(the_usual_port_is_not_signed),
        cmocka_unit_test(what_is_missing_is_named),
        cmocka_unit_test(a_secret_of_several_values_is_refused_without_being_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
