// SPDX-License-Identifier: Apache-2.0
// Requests against resend.com/docs/api-reference/emails/send-email and the pages on attachments.
#include "common/vendor/resend/resend.h"
#include "tests/unit/common/vendor/vendor_case.h"

#define HEADERS                                                                                    \
    "Authorization: Bearer re_123\nIdempotency-Key: " CASE_NID ".2\n"                              \
    "Content-Type: application/json\n"
#define TAGS                                                                                       \
    "\"tags\":[{\"name\":\"nid\",\"value\":\"" CASE_NID                                            \
    "\"},{\"name\":\"attempt\",\"value\":\"2\"}]"

static const VendorAccount account = {.name = {"main", 4}, .secret = {"re_123", 6}};

static void the_example_of_the_documentation_is_built(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    VendorMail mail = {
        .notification_id = STR(CASE_NID),
        .attempt = 2,
        .key = STR(CASE_NID ".2"),
        .from = {STR("Acme"), STR("onboarding@resend.dev")},
        .to = {STR_EMPTY, STR("delivered@resend.dev")},
        .subject = STR("hello world"),
        .html = STR("<p>it works!</p>"),
        .message_id = STR(CASE_NID "@mail.example.com")};
    VendorRequest request;
    case_build(&resend_api, &mail, &account, arena, &request);
    case_request_is(
        &request, arena, "POST", "https://api.resend.com/emails", HEADERS,
        "{\"from\":\"Acme <onboarding@resend.dev>\",\"to\":[\"delivered@resend.dev\"],"
        "\"subject\":\"hello world\",\"html\":\"<p>it works!</p>\"," TAGS "}");
    arena_free(arena);
}

static void a_mail_with_everything_is_built(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    const VendorAddress cc[] = {
        {STR("Doe, Jane"), STR("jane@example.com")},
        {STR("Ä, öööööööööööööööööööööööööööööö"), STR("a@example.com")}};
    const VendorAddress bcc = {STR_EMPTY, STR("audit@example.com")};
    const VendorPair header = {STR("List-Unsubscribe"), STR("<https://example.com/u/1>")};
    const VendorAttachment attachments[] = {
        {STR("invoice.pdf"), STR("application/pdf"), STR_EMPTY, STR("%PDF")},
        {STR("logo.png"), STR("image/png"), STR("logo-image"), STR("\x89PNG")}};
    VendorMail mail = case_mail();
    mail.from.name = STR("Shop, \"Inc.\"");
    mail.cc = cc;
    mail.cc_count = 2;
    mail.bcc = &bcc;
    mail.bcc_count = 1;
    mail.reply_to = STR("help@example.com");
    mail.headers = &header;
    mail.header_count = 1;
    mail.attachments = attachments;
    mail.attachment_count = 2;
    VendorRequest request;
    case_build(&resend_api, &mail, &account, arena, &request);
    // The words are Python's base64.b64encode of 44 bytes (not half a character) and of the rest.
    case_request_is(
        &request, arena, "POST", "https://api.resend.com/emails", HEADERS,
        "{\"from\":\"Shop   Inc <shop@example.com>\",\"to\":[\"Bob <bob@example.org>\"],"
        "\"cc\":[\"=?UTF-8?B?RG9lLCBKYW5l?= <jane@example.com>\","
        "\"=?UTF-8?B?w4QsIMO2w7bDtsO2w7bDtsO2w7bDtsO2w7bDtsO2w7bDtsO2w7bDtsO2w7Y=?= "
        "=?UTF-8?B?w7bDtsO2w7bDtsO2w7bDtsO2w7Y=?= <a@example.com>\"],"
        "\"bcc\":[\"audit@example.com\"],\"reply_to\":\"help@example.com\","
        "\"subject\":\"Invoice 17\",\"html\":\"<p>17 &euro;</p>\",\"text\":\"17 EUR\","
        "\"headers\":{\"List-Unsubscribe\":\"<https://example.com/u/1>\"},"
        "\"attachments\":[{\"content\":\"JVBERg==\",\"filename\":\"invoice.pdf\","
        "\"content_type\":\"application/pdf\"},{\"content\":\"iVBORw==\","
        "\"filename\":\"logo.png\",\"content_type\":\"image/"
        "png\",\"content_id\":\"logo-image\"}]," TAGS "}");
    arena_free(arena);
}

static void what_it_cannot_carry_is_refused_by_name(void **state)
{
    (void)state;
    VendorMail mail = case_mail();
    mail.key = STR("a/b");
    case_refused(
        &resend_api, &mail, &account, ERROR_PERMANENT,
        "the mail's 'key' is not 1 to 64 of the characters that resend takes");
    mail = case_mail();
    mail.subject = STR_EMPTY;
    case_refused(
        &resend_api, &mail, &account, ERROR_PERMANENT,
        "the mail's 'subject' is empty, and resend needs one");
    const VendorAttachment attachment = {STR("a.js"), STR("text/javascript"), STR_EMPTY, STR("1")};
    mail = case_mail();
    mail.attachments = &attachment;
    mail.attachment_count = 1;
    case_refused(
        &resend_api, &mail, &account, ERROR_PERMANENT,
        "resend takes no attachment of the type '.js': 'a.js'");
    mail = case_mail();
    mail.to.address = STR("böb@example.org");
    case_refused(
        &resend_api, &mail, &account, ERROR_PERMANENT,
        "the mail's 'to' has an address with more than ASCII, which resend does not take");
}

static void the_credential_is_tested_with_a_mail_of_nothing(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    VendorRequest request;
    Error err = {0};
    assert_true(resend_api.test(&account, 0, arena, &request, &err));
    case_request_is(
        &request, arena, "POST", "https://api.resend.com/emails",
        "Authorization: Bearer re_123\nContent-Type: application/json\n", "{}");
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_example_of_the_documentation_is_built),
        cmocka_unit_test(a_mail_with_everything_is_built),
        cmocka_unit_test(what_it_cannot_carry_is_refused_by_name),
        cmocka_unit_test(the_credential_is_tested_with_a_mail_of_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
