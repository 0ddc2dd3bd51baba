// SPDX-License-Identifier: Apache-2.0
// Requests against SparkPost/developers.sparkpost.com, content/api/transmissions.apib ("Send RFC822
// Content") and pull request 590 (Idempotency-Key).
#include "common/vendor/sparkpost/sparkpost.h"
#include "tests/unit/common/vendor/vendor_case.h"

#define METADATA "\"metadata\":{\"nid\":\"" CASE_NID "\",\"attempt\":\"2\"}"
#define CONTENT                                                                                    \
    "\"content\":{\"email_rfc822\":\"From: Shop <shop@example.com>\\r\\n"                          \
    "To: Bob <bob@example.org>\\r\\nMessage-ID: <" CASE_NID "@mail.example.com>\\r\\n"             \
    "Subject: Invoice 17\\r\\n\\r\\n17 EUR\\r\\n\"}"

static const VendorPair settings[] = {
    {{"bounce_domain", 13}, {"bounce.example.com", 18}}, {{"subaccount", 10}, {"7", 1}}};
static const VendorAccount account = {
    .name = {"main", 4},
    .secret = {"14ac5499cfdd2bb2", 16},
    .settings = settings,
    .setting_count = 2};

static void a_whole_mail_is_sent_under_its_key(void **state)
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
    case_build(&sparkpost_api, &mail, &account, arena, &request);
    case_request_is(
        &request, arena, "POST", "https://api.sparkpost.com/api/v1/transmissions",
        "Authorization: 14ac5499cfdd2bb2\nX-MSYS-SUBACCOUNT: 7\nIdempotency-Key: " CASE_NID
        ".2\nContent-Type: application/json\n",
        "{\"options\":{\"open_tracking\":false,\"click_tracking\":false,\"transactional\":true},"
        "\"recipients\":[{\"address\":{\"email\":\"bob@example.org\"}," METADATA
        "},{\"address\":{\"email\":\"ann@example.org\"}," METADATA
        "},{\"address\":{\"email\":\"audit@example.com\"}," METADATA
        "}],\"return_path\":\"b+t0k3n@bounce.example.com\"," CONTENT "}");
    arena_free(arena);
}

static void marketing_is_not_transactional(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    VendorAccount bare = account;
    bare.setting_count = 0;
    VendorMail mail = case_mail();
    mail.category = STR("marketing");
    mail.return_path = STR("b+t0k3n@bounce.example.com");
    VendorRequest request;
    case_build(&sparkpost_api, &mail, &bare, arena, &request);
    assert_string_equal(
        arena_cstr(arena, request.body),
        "{\"options\":{\"open_tracking\":false,\"click_tracking\":false,\"transactional\":false},"
        "\"recipients\":[{\"address\":{\"email\":\"bob@example.org\"}," METADATA "}]," CONTENT "}");
    arena_free(arena);
}

static void what_it_would_replace_is_refused(void **state)
{
    (void)state;
    VendorMail mail = case_mail();
    mail.html = STR("<p>{ {a}} {{name}}</p>");
    case_refused(
        &sparkpost_api, &mail, &account, ERROR_PERMANENT,
        "the mail's 'html' has '{{', which sparkpost would replace");
    mail = case_mail();
    mail.subject = STR("{{{");
    case_refused(
        &sparkpost_api, &mail, &account, ERROR_PERMANENT,
        "the mail's 'subject' has '{{', which sparkpost would replace");
    const VendorPair header = {STR("X-Order"), STR("{{17}}")};
    mail = case_mail();
    mail.headers = &header;
    mail.header_count = 1;
    case_refused(
        &sparkpost_api, &mail, &account, ERROR_PERMANENT,
        "the mail's 'headers' has '{{', which sparkpost would replace");
    mail = case_mail();
    mail.message = STR("Subject: \xe4\r\n\r\n");
    case_refused(
        &sparkpost_api, &mail, &account, ERROR_PERMANENT, "the mail's 'message' is not UTF-8");
    mail = case_mail();
    mail.key = STR_EMPTY;
    case_refused(
        &sparkpost_api, &mail, &account, ERROR_PERMANENT,
        "the mail's 'key' is not 1 to 64 of the characters that sparkpost takes");
}

static void the_credential_is_tested_without_recipients(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    VendorRequest request;
    Error err = {0};
    assert_true(sparkpost_api.test(&account, 0, arena, &request, &err));
    assert_string_equal(arena_cstr(arena, request.body), "{\"recipients\":[]}");
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_mail_is_sent_under_its_key),
        cmocka_unit_test(marketing_is_not_transactional),
        cmocka_unit_test(what_it_would_replace_is_refused),
        cmocka_unit_test(the_credential_is_tested_without_recipients),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
