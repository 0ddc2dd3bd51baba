// SPDX-License-Identifier: Apache-2.0
// Requests against the example of twilio.com/docs/sendgrid, "Mail Send", whose keys stand in the
// order of sendgrid-oai's schema.
#include "common/vendor/sendgrid/sendgrid.h"
#include "tests/unit/common/vendor/vendor_case.h"

#define HEADERS "Authorization: Bearer SG.key\nContent-Type: application/json\n"
#define ARGS "\"custom_args\":{\"notification_id\":\"" CASE_NID "\",\"attempt\":\"2\"}"
#define UNTRACKED                                                                                  \
    "\"tracking_settings\":{\"click_tracking\":{\"enable\":false,\"enable_text\":false},"          \
    "\"open_tracking\":{\"enable\":false}}"
#define MESSAGE_ID "\"Message-ID\":\"<" CASE_NID "@mail.example.com>\""

static const VendorAccount account = {.name = {"main", 4}, .secret = {"SG.key", 6}};

static void a_mail_with_everything_is_built(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    const VendorAddress cc[] = {
        {STR("Doe, Jane"), STR("jane@example.com")}, {STR_EMPTY, STR("BOB@example.org")}};
    const VendorAddress bcc[] = {
        {STR_EMPTY, STR("audit@example.com")}, {STR_EMPTY, STR("jane@example.com")}};
    const VendorPair headers[] = {
        {STR("List-Unsubscribe"), STR("<https://example.com/u/1>")},
        {STR("Feedback-ID"), STR("invoice:billing:acme:stentor")}};
    const VendorAttachment attachments[] = {
        {STR("index.html"), STR("text/html"), STR_EMPTY, STR("<p>a</p>")},
        {STR("logo.png"), STR("image/png"), STR("logo"), STR("\x89PNG")}};
    VendorMail mail = case_mail();
    mail.cc = cc;
    mail.cc_count = 2;
    mail.bcc = bcc;
    mail.bcc_count = 2;
    mail.reply_to = STR("help@example.com");
    mail.headers = headers;
    mail.header_count = 2;
    mail.attachments = attachments;
    mail.attachment_count = 2;
    VendorRequest request;
    case_build(&sendgrid_api, &mail, &account, arena, &request);
    case_request_is(
        &request, arena, "POST", "https://api.sendgrid.com/v3/mail/send", HEADERS,
        "{\"personalizations\":[{\"to\":[{\"email\":\"bob@example.org\",\"name\":\"Bob\"}],"
        "\"cc\":[{\"email\":\"jane@example.com\",\"name\":\"\\\"Doe, Jane\\\"\"}],"
        "\"bcc\":[{\"email\":\"audit@example.com\"}]," ARGS "}],"
        "\"from\":{\"email\":\"shop@example.com\",\"name\":\"Shop\"},"
        "\"reply_to\":{\"email\":\"help@example.com\"},\"subject\":\"Invoice 17\","
        "\"content\":[{\"type\":\"text/plain\",\"value\":\"17 EUR\"},"
        "{\"type\":\"text/html\",\"value\":\"<p>17 &euro;</p>\"}],"
        "\"attachments\":[{\"content\":\"PHA+YTwvcD4=\",\"type\":\"text/html\","
        "\"filename\":\"index.html\",\"disposition\":\"attachment\"},"
        "{\"content\":\"iVBORw==\",\"type\":\"image/png\",\"filename\":\"logo.png\","
        "\"disposition\":\"inline\",\"content_id\":\"logo\"}],"
        "\"headers\":{\"List-Unsubscribe\":\"<https://example.com/u/1>\","
        "\"Feedback-ID\":\"invoice:billing:acme:stentor\"," MESSAGE_ID "},"
        "\"categories\":[\"billing\"]," UNTRACKED "}");
    arena_free(arena);
}

static void a_plain_mail_is_built_for_another_region(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    VendorPair base = {STR("base_url"), STR("https://api.eu.sendgrid.com/")};
    VendorAccount eu = account;
    eu.settings = &base;
    eu.setting_count = 1;
    VendorMail mail = case_mail();
    mail.to.name = STR("Bøb \"B\"");
    mail.html = STR_EMPTY;
    VendorRequest request;
    case_build(&sendgrid_api, &mail, &eu, arena, &request);
    case_request_is(
        &request, arena, "POST", "https://api.eu.sendgrid.com/v3/mail/send", HEADERS,
        "{\"personalizations\":[{\"to\":[{\"email\":\"bob@example.org\","
        "\"name\":\"Bøb \\\"B\\\"\"}]," ARGS "}],"
        "\"from\":{\"email\":\"shop@example.com\",\"name\":\"Shop\"},\"subject\":\"Invoice 17\","
        "\"content\":[{\"type\":\"text/plain\",\"value\":\"17 EUR\"}],\"headers\":{" MESSAGE_ID
        "},\"categories\":[\"billing\"]," UNTRACKED "}");
    arena_free(arena);
}

static void what_it_cannot_carry_is_refused_by_name(void **state)
{
    (void)state;
    VendorMail mail = case_mail();
    mail.subject = STR_EMPTY;
    case_refused(
        &sendgrid_api, &mail, &account, ERROR_PERMANENT,
        "the mail's 'subject' is empty, and sendgrid needs one");
    mail = case_mail();
    mail.to.address = STR_EMPTY;
    case_refused(&sendgrid_api, &mail, &account, ERROR_PERMANENT, "the mail's 'to' has no address");
    static char bytes[30 * 1024 * 1024];
    memset(bytes, 'x', sizeof bytes);
    mail = case_mail();
    mail.html = str_of(bytes, sizeof bytes);
    case_refused(
        &sendgrid_api, &mail, &account, ERROR_PERMANENT,
        "the mail's 'html', 'text' and 'attachments' have 31457296 bytes, and sendgrid takes at "
        "most 31457280");
}

static void the_credential_is_tested_in_the_sandbox(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    VendorPair from = {STR("test_from"), STR("shop@example.com")};
    VendorAccount named = account;
    named.settings = &from;
    named.setting_count = 1;
    VendorRequest request;
    Error err = {0};
    assert_true(sendgrid_api.test(&named, 0, arena, &request, &err));
    case_request_is(
        &request, arena, "POST", "https://api.sendgrid.com/v3/mail/send", HEADERS,
        "{\"personalizations\":[{\"to\":[{\"email\":\"test@example.com\"}]}],"
        "\"from\":{\"email\":\"shop@example.com\"},\"subject\":\"test of a credential\","
        "\"content\":[{\"type\":\"text/plain\",\"value\":\"not sent\"}],"
        "\"mail_settings\":{\"sandbox_mode\":{\"enable\":true}}}");
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mail_with_everything_is_built),
        cmocka_unit_test(a_plain_mail_is_built_for_another_region),
        cmocka_unit_test(what_it_cannot_carry_is_refused_by_name),
        cmocka_unit_test(the_credential_is_tested_in_the_sandbox),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
