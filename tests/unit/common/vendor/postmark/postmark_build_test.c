// SPDX-License-Identifier: Apache-2.0
// Requests against the examples of postmarkapp.com/developer ("Send a single email"; "Outbound
// message search"; "Custom metadata FAQ").
#include "common/vendor/postmark/postmark.h"
#include "tests/unit/common/vendor/vendor_case.h"

#define HEADERS "Accept: application/json\nX-Postmark-Server-Token: server token\n"
#define JSON_HEADERS HEADERS "Content-Type: application/json\n"
#define METADATA "\"Metadata\":{\"nid\":\"" CASE_NID "\",\"attempt\":\"2\"}"

static const VendorPair settings[] = {{{"message_stream", 14}, {"outbound", 8}}};
static const VendorAccount account = {
    .name = {"main", 4}, .secret = {"server token", 12}, .settings = settings, .setting_count = 1};

static void the_example_of_the_documentation_is_built(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    const VendorAddress cc = {STR_EMPTY, STR("copied@example.com")};
    const VendorAddress bcc = {STR_EMPTY, STR("blind-copied@example.com")};
    const VendorPair header = {STR("CUSTOM-HEADER"), STR("value")};
    const VendorAttachment attachments[] = {
        {STR("readme.txt"), STR("text/plain"), STR_EMPTY, STR("test content")},
        {STR("report.pdf"), STR("application/octet-stream"), STR_EMPTY, STR("test content")},
        {STR("image.jpg"), STR("image/jpeg"), STR("image.jpg"), STR("test content")}};
    VendorMail mail = {
        .notification_id = STR(CASE_NID),
        .attempt = 2,
        .category = STR("Invitation"),
        .from = {STR_EMPTY, STR("sender@example.com")},
        .to = {STR_EMPTY, STR("receiver@example.com")},
        .cc = &cc,
        .cc_count = 1,
        .bcc = &bcc,
        .bcc_count = 1,
        .subject = STR("Test"),
        .html = STR("<b>Hello</b> <img src=\"cid:image.jpg\"/>"),
        .text = STR("Hello"),
        .reply_to = STR("reply@example.com"),
        .headers = &header,
        .header_count = 1,
        .attachments = attachments,
        .attachment_count = 3};
    VendorRequest request;
    case_build(&postmark_api, &mail, &account, arena, &request);
    case_request_is(
        &request, arena, "POST", "https://api.postmarkapp.com/email", JSON_HEADERS,
        "{\"From\":\"sender@example.com\",\"To\":\"receiver@example.com\","
        "\"Cc\":\"copied@example.com\",\"Bcc\":\"blind-copied@example.com\",\"Subject\":\"Test\","
        "\"Tag\":\"Invitation\",\"HtmlBody\":\"<b>Hello</b> <img src=\\\"cid:image.jpg\\\"/>\","
        "\"TextBody\":\"Hello\",\"ReplyTo\":\"reply@example.com\","
        "\"Headers\":[{\"Name\":\"CUSTOM-HEADER\",\"Value\":\"value\"}],\"TrackOpens\":false,"
        "\"TrackLinks\":\"None\",\"Attachments\":[{\"Name\":\"readme.txt\","
        "\"Content\":\"dGVzdCBjb250ZW50\",\"ContentType\":\"text/plain\"},"
        "{\"Name\":\"report.pdf\",\"Content\":\"dGVzdCBjb250ZW50\","
        "\"ContentType\":\"application/octet-stream\"},{\"Name\":\"image.jpg\","
        "\"ContentID\":\"cid:image.jpg\",\"Content\":\"dGVzdCBjb250ZW50\","
        "\"ContentType\":\"image/jpeg\"}]," METADATA ",\"MessageStream\":\"outbound\"}");
    arena_free(arena);
}

static void our_message_id_is_kept_and_names_are_quoted(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    const VendorAddress cc[] = {
        {STR("Ann"), STR("ann@example.org")}, {STR("Jr., Bob \"B\""), STR("b@example.org")}};
    VendorMail mail = case_mail();
    mail.from.name = STR("Käse & Co");
    mail.cc = cc;
    mail.cc_count = 2;
    mail.html = STR_EMPTY;
    VendorAccount bare = account;
    bare.setting_count = 0;
    VendorRequest request;
    case_build(&postmark_api, &mail, &bare, arena, &request);
    case_request_is(
        &request, arena, "POST", "https://api.postmarkapp.com/email", JSON_HEADERS,
        "{\"From\":\"Käse & Co <shop@example.com>\",\"To\":\"Bob <bob@example.org>\","
        "\"Cc\":\"Ann <ann@example.org>, \\\"Jr., Bob \\\\\\\"B\\\\\\\"\\\" <b@example.org>\","
        "\"Subject\":\"Invoice 17\",\"Tag\":\"billing\",\"TextBody\":\"17 EUR\",\"Headers\":["
        "{\"Name\":\"Message-ID\",\"Value\":\"<" CASE_NID "@mail.example.com>\"},"
        "{\"Name\":\"X-PM-KeepID\",\"Value\":\"true\"}],\"TrackOpens\":false,"
        "\"TrackLinks\":\"None\"," METADATA "}");
    arena_free(arena);
}

static void what_it_cannot_carry_is_refused_by_name(void **state)
{
    (void)state;
    static VendorAddress many[50];
    for (size_t i = 0; i < 50; i++) {
        many[i] = (VendorAddress){STR_EMPTY, STR("a@example.org")};
    }
    VendorMail mail = case_mail();
    mail.cc = many;
    mail.cc_count = 50;
    case_refused(
        &postmark_api, &mail, &account, ERROR_PERMANENT,
        "the mail has 51 recipients in 'to', 'cc' and 'bcc', and postmark takes at most 50");
    mail = case_mail();
    mail.html = mail.text = STR_EMPTY;
    case_refused(
        &postmark_api, &mail, &account, ERROR_PERMANENT,
        "the mail has neither 'html' nor 'text', and postmark needs one");
    VendorAttachment attachment = {STR("virus.tar.EXE"), STR("x/y"), STR_EMPTY, STR("MZ")};
    mail = case_mail();
    mail.attachments = &attachment;
    mail.attachment_count = 1;
    case_refused(
        &postmark_api, &mail, &account, ERROR_PERMANENT,
        "postmark takes no attachment of the type '.exe': 'virus.tar.EXE'");
    VendorPair header = {STR("content-type"), STR("text/x")};
    mail = case_mail();
    mail.headers = &header;
    mail.header_count = 1;
    case_refused(
        &postmark_api, &mail, &account, ERROR_PERMANENT,
        "the mail's header 'content-type' cannot be set at postmark");
    mail = case_mail();
    mail.subject = STR("\xff");
    case_refused(
        &postmark_api, &mail, &account, ERROR_PERMANENT, "the mail's 'subject' is not UTF-8");
}

static void sizes_are_counted_as_base64(void **state)
{
    (void)state;
    static char bytes[8 * 1024 * 1024];
    memset(bytes, 'x', sizeof bytes);
    VendorAttachment attachment = {STR("a.txt"), STR("text/plain"), STR_EMPTY, STR_EMPTY};
    VendorMail mail = case_mail();
    mail.attachments = &attachment;
    mail.attachment_count = 1;
    attachment.bytes = str_of(bytes, sizeof bytes);
    case_refused(
        &postmark_api, &mail, &account, ERROR_PERMANENT,
        "the mail's 'html', 'text' and 'attachments' have 11184849 bytes, and postmark takes at "
        "most 10485760");
    mail = case_mail();
    mail.html = str_of(bytes, 5 * 1024 * 1024 + 1);
    case_refused(
        &postmark_api, &mail, &account, ERROR_PERMANENT,
        "the mail's 'html' is longer than the 5242880 bytes that postmark takes");
}

static void a_bad_account_is_a_config_error(void **state)
{
    (void)state;
    VendorMail mail = case_mail();
    VendorAccount bad = account;
    bad.secret = STR_EMPTY;
    case_refused(
        &postmark_api, &mail, &bad, ERROR_CONFIG,
        "the credential 'main' of postmark has no secret");
    bad.secret = STR("a\r\nb");
    case_refused(
        &postmark_api, &mail, &bad, ERROR_CONFIG,
        "the credential 'main' of postmark has a line break in its secret");
    VendorPair base = {STR("base_url"), STR("api.postmarkapp.com")};
    bad = account;
    bad.settings = &base;
    case_refused(
        &postmark_api, &mail, &bad, ERROR_CONFIG,
        "the setting 'base_url' of the credential 'main' is not an http(s) URL");
}

static void the_credential_is_tested_without_sending(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    VendorPair base = {STR("base_url"), STR("http://127.0.0.1:8/x/")};
    VendorAccount local = account;
    local.settings = &base;
    VendorRequest request;
    Error err = {0};
    assert_true(postmark_api.test(&local, 0, arena, &request, &err));
    case_request_is(&request, arena, "GET", "http://127.0.0.1:8/x/server", HEADERS, "");
    arena_free(arena);
}

static void an_unknown_outcome_is_asked_for_by_metadata(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    VendorMail mail = case_mail();
    VendorRequest request;
    Error err = {0};
    assert_true(postmark_api.ask(&mail, &account, 0, arena, &request, &err));
    case_request_is(
        &request, arena, "GET",
        "https://api.postmarkapp.com/messages/outbound?count=50&offset=0&metadata_nid=" CASE_NID,
        HEADERS, "");
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_example_of_the_documentation_is_built),
        cmocka_unit_test(our_message_id_is_kept_and_names_are_quoted),
        cmocka_unit_test(what_it_cannot_carry_is_refused_by_name),
        cmocka_unit_test(sizes_are_counted_as_base64),
        cmocka_unit_test(a_bad_account_is_a_config_error),
        cmocka_unit_test(the_credential_is_tested_without_sending),
        cmocka_unit_test(an_unknown_outcome_is_asked_for_by_metadata),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
